// A worker for the topic "mail", on node-redis: node worker.mjs [PORT]
//
// The worker claims a timer when it is due, sends the mail, and acknowledges the timer after that. An
// interval extends the lease while the mail is being sent. An exception fails the timer, which comes
// again by its retry policy. SIGTERM stops the worker when the current mail is done.
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '@redis/client';

const port = Number(process.argv[2] ?? 7878);
let isStopping = false;

async function open() {
    const client = createClient({ socket: { host: '127.0.0.1', port } });
    client.on('error', (error) => console.error(error.message)); // it reconnects by itself
    await client.connect();
    return client;
}

async function send(mail) {
    await sleep((mail.seconds ?? 0) * 1000); // stands for the real work
    if (mail.to === undefined) throw new Error('the mail has no address');
    console.log(`mail to ${mail.to}`);
}

// A claim that waits holds up its connection, so everything else has another one.
const claims = await open();
const answers = await open();

async function work([token, topic, id, payload, dueMs, attempt, headers, leaseMs]) {
    const extend = () => answers.sendCommand(['EXTEND', token]).catch(() => {}); // STALE: lost
    const heartbeat = setInterval(extend, leaseMs / 3);
    let outcome = ['ACK', token];
    try {
        await send(JSON.parse(payload));
    } catch (error) {
        outcome = ['FAIL', token, 'REASON', error.message];
    }
    clearInterval(heartbeat);
    await answers.sendCommand(outcome).catch((error) => console.error(id, error.message));
}

process.on('SIGTERM', () => { isStopping = true; });
while (!isStopping) {
    try {
        const claim = ['CLAIM', 'mail', 'WAIT', '2s', 'WORKER', 'node'];
        for (const delivery of await claims.sendCommand(claim)) await work(delivery);
    } catch (error) {
        console.error(error.message);
        await sleep(1000); // the server restarts; what was not acknowledged comes again
    }
}
claims.destroy();
answers.destroy();
