// SPDX-License-Identifier: MIT
// Flows of bullmq: 100 flows of 100 tasks, processed by a worker that does nothing, 100 at a time.
// Prints tasks per second. Usage: node jobs_bullmq.mjs REDIS_PORT
import { FlowProducer, Worker } from "bullmq";

const FLOWS = 100, TASKS = 100;
const connection = { host: "127.0.0.1", port: Number(process.argv[2]), maxRetriesPerRequest: null };
const producer = new FlowProducer({ connection });
const options = { removeOnComplete: true };
for (let flow = 0; flow < FLOWS; flow++) {
    const children = Array.from({ length: TASKS }, (_, task) => (
        { name: `t${task}`, queueName: "work", data: "x", opts: options }));
    await producer.add({ name: `j${flow}`, queueName: "jobs", data: "x", children, opts: options });
}

let done = 0;
const start = process.hrtime.bigint();
await new Promise((resolve) => {
    const worker = new Worker("work", async () => {}, { connection, concurrency: 100 });
    worker.on("completed", () => {
        if (++done === FLOWS * TASKS) resolve();
    });
});
const seconds = Number(process.hrtime.bigint() - start) / 1e9;
console.log(Math.round(done / seconds));
process.exit(0);
