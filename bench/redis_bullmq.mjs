// SPDX-License-Identifier: MIT
// Delayed jobs of bullmq: added 100 at a time, due at once, processed by a worker that does nothing,
// 100 at a time. Prints added and processed per second. Usage: node redis_bullmq.mjs SOCKET COUNT
import { Queue, Worker } from "bullmq";

const BATCH = 100;
const connection = { path: process.argv[2], maxRetriesPerRequest: null };
const count = Number(process.argv[3]);
const queue = new Queue("bench", { connection });
const opts = { delay: 1, removeOnComplete: true };
const clock = () => Number(process.hrtime.bigint()) / 1e9;
await queue.waitUntilReady();

const start = clock();
for (let i = 0; i < count; i += BATCH) {
    await queue.addBulk(Array.from({ length: BATCH }, () => ({ name: "t", data: "x".repeat(32), opts })));
}
const added = count / (clock() - start);

let done = 0;
const begin = clock();
await new Promise((resolve) => {
    const worker = new Worker("bench", async () => {}, { connection, concurrency: BATCH });
    worker.on("completed", () => {
        if (++done === count) resolve();
    });
});
console.log(Math.round(added), Math.round(done / (clock() - begin)));
process.exit(0);
