// node-redis and ioredis as people use them: client.mjs PORT PORT-WITH-KEYS KEY
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { createClient, RESP_TYPES } from '@redis/client';
import { Redis } from 'ioredis';

const require = createRequire(import.meta.url);
const [port, portWithKeys] = process.argv.slice(2, 4).map(Number);
const key = process.argv[4];
const RESP = [2, 3];

// A map is flat in version 2. In version 3 it is an object, a Map or a flat array, as one chooses.
function pairs(answer) {
    if (answer instanceof Map) return Object.fromEntries(answer);
    if (!Array.isArray(answer)) return answer;
    return Object.fromEntries(answer.flatMap((name, i) => (i % 2 ? [] : [[name, answer[i + 1]]])));
}

async function refused(code, promise) {
    const error = await promise.then(
        (answer) => assert.fail(`not refused: ${JSON.stringify(answer)}`), (reason) => reason);
    assert.ok(error.message.startsWith(code), `${error.message}, not ${code}`);
    assert.ok(!/[\r\n]/.test(error.message));
    return error;
}

// `say` sends the words of one command. Looks until so many claims wait.
async function untilWaiting(say, count) {
    while (!(await say('INFO', 'clients')).includes(`requests_under_way:${count}\r\n`));
}

async function open(options) {
    const client = createClient({ socket: { port, host: '127.0.0.1' }, ...options });
    client.on('error', (error) => { throw error; });
    await client.connect();
    return client;
}

// What both have to be able to do; `say` and `sayElsewhere` are two connections.
async function live(say, sayElsewhere, topic) {
    assert.equal(await say('PING'), 'PONG');
    assert.equal(await say('SCHEDULE', topic, 'h\u00e9llo\r\n', 'ID', 'a', 'HEADER', 'k', 'v'), 'a');
    const timer = pairs(await say('GET', topic, 'a'));
    assert.equal(timer.state, 'ready');
    assert.equal(typeof timer.due_ms, 'number');
    const [delivery] = await say('CLAIM', topic, 'COUNT', '10', 'WAIT', '20s');
    const [token, where, id, payload, due, attempt, headers] = delivery;
    assert.deepEqual([where, id, payload, due, attempt, headers],
        [topic, 'a', 'h\u00e9llo\r\n', timer.due_ms, 1, ['k', 'v']]);
    assert.equal(await say('EXTEND', token, '1m'), 60000);
    assert.equal(await say('ACK', token), 1);
    assert.equal(await say('ACK', token), 0);
    assert.equal(await say('GET', topic, 'a'), null);
    assert.deepEqual(await say('CLAIM', topic), []);

    const waiting = say('CLAIM', topic, 'WAIT', '60s');
    await untilWaiting(sayElsewhere, 1);
    await sayElsewhere('SCHEDULE', topic, 'at last');
    assert.equal((await waiting)[0][3], 'at last');

    await refused('BADARG IN', say('SCHEDULE', topic, 'x', 'IN', 'soon'));
    await refused('BADARG', say('SCHEDULE', topic, 'x', 'IN', 'a\r\n+OK\r\n'));
    await refused('NOTFOUND', say('TOPIC', 'node/nowhere'));
    await refused('STALE', say('EXTEND', 'nonsense'));
    await refused('ERR unknown command', say('NONSENSE'));
    assert.equal(await say('PING'), 'PONG');
}

const cases = {
    async node_redis_lives() {
        for (const version of RESP) {
            const client = await open({ RESP: version });
            const other = client.duplicate();
            await other.connect();
            await live((...words) => client.sendCommand(words),
                (...words) => other.sendCommand(words), `node/life${version}`);
            await client.close();
            other.destroy();
        }
    },

    async node_redis_knows_the_server() {
        for (const version of RESP) {
            const client = await open({ RESP: version, name: 'me' });
            assert.equal(await client.ping(), 'PONG');
            assert.equal(await client.clientGetName(), 'me');
            const mine = await client.clientInfo();
            assert.equal(mine.id, await client.clientId());
            assert.equal(mine.name, 'me');
            assert.equal(mine.resp, version);
            const commands = await client.command();
            assert.equal(commands.length, await client.commandCount());
            const get = commands.find(({ name }) => name === 'get');
            assert.equal(get.arity, 3);
            assert.deepEqual([...get.categories], ['@read']);
            assert.ok((await client.info('server')).includes(`tcp_port:${port}`));
            assert.equal((await client.hello()).proto, version);
            await client.close();
        }
    },

    async node_redis_many_at_once() {
        const client = await open();
        const ids = Array.from({ length: 2000 }, (_, i) => `${i}`);
        const say = (...words) => client.sendCommand(words);
        const made = await Promise.all(
            ids.map((id) => say('SCHEDULE', 'node/pipe', 'x'.repeat(id % 100), 'ID', id)));
        assert.deepEqual(made, ids);
        const claims = await Promise.all(
            [1, 2, 3].map(() => say('CLAIM', 'node/pipe', 'COUNT', '1000')));
        assert.deepEqual(claims.map((claim) => claim.length), [1000, 1000, 0]);
        const acks = await client.multi()
            .addCommand(['ACK', ...claims[0].map(([token]) => token)])
            .addCommand(['ACK', ...claims[1].map(([token]) => token)])
            .execAsPipeline();
        assert.deepEqual(acks, [1000, 1000]);
        const transaction = client.multi().addCommand(['SCHEDULE', 'node/all', 'x']);
        await assert.rejects(transaction.exec());
        assert.equal(await say('PING'), 'PONG');
        assert.ok(!(await say('TOPICS')).includes('node/all'));
        await client.close();
    },

    async node_redis_bytes_and_maps() {
        const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
        const client = await open({
            RESP: 3,
            commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.MAP]: Map } },
        });
        await client.sendCommand(['SCHEDULE', 'node/bytes', bytes, 'ID', 'a']);
        const timer = await client.sendCommand(['GET', 'node/bytes', 'a']);
        assert.ok(timer instanceof Map);
        const named = new Map([...timer].map(([name, value]) => [`${name}`, value]));
        assert.deepEqual(named.get('payload'), bytes);
        const topic = await client.sendCommand(['TOPIC', 'node/bytes']);
        const flags = [...topic].filter(([name]) => `${name}` === 'paused');
        assert.equal(flags[0][1], false);
        await client.close();
    },

    async node_redis_keys() {
        for (const version of RESP) {
            const socket = { port: portWithKeys, host: '127.0.0.1', reconnectStrategy: false };
            const at = { RESP: version, socket };
            for (const [username, password] of [[undefined, key], ['worker', key]]) {
                const client = await open({ ...at, username, password });
                assert.equal(await client.ping(), 'PONG');
                await client.close();
            }
            const stranger = createClient({ ...at, password: 'wrong' });
            stranger.on('error', () => {});
            await refused('NOAUTH', stranger.connect());
        }
    },

    async ioredis_lives() {
        const options = { port, host: '127.0.0.1', connectionName: 'me', maxRetriesPerRequest: 0 };
        const client = new Redis(options), other = client.duplicate();
        await live((...words) => client.call(...words), (...words) => other.call(...words),
            'ioredis/life');
        assert.equal(await client.client('GETNAME'), 'me');
        other.disconnect();
        assert.equal(await client.quit(), 'OK');
    },

    async ioredis_pipelines() {
        const client = new Redis({ port, host: '127.0.0.1', enableAutoPipelining: true });
        const pipeline = client.pipeline();
        for (let i = 0; i < 1000; i++) pipeline.call('SCHEDULE', 'ioredis/pipe', 'x', 'ID', `${i}`);
        pipeline.call('NONSENSE').callBuffer('CLAIM', 'ioredis/pipe', 'COUNT', '1000');
        const answers = await pipeline.exec();
        assert.equal(answers[999][1], '999');
        assert.ok(answers[1000][0].message.startsWith('ERR unknown command'));
        const [error, claim] = answers[1001];
        assert.equal(error, null);
        assert.equal(claim.length, 1000);
        assert.ok(Buffer.isBuffer(claim[0][3]));
        assert.equal(await client.call('ACK', ...claim.map(([token]) => token)), 1000);
        await refused('EXECABORT', client.multi().call('SCHEDULE', 'ioredis/all', 'x').exec());
        assert.equal(await client.ping(), 'PONG');
        assert.ok(!(await client.call('TOPICS')).includes('ioredis/all'));
        client.disconnect();
    },

    async ioredis_keys() {
        for (const username of [undefined, 'worker']) {
            const client = new Redis({ port: portWithKeys, host: '127.0.0.1', username, password: key });
            assert.equal(await client.ping(), 'PONG');
            client.disconnect();
        }
        const stranger = new Redis({ port: portWithKeys, host: '127.0.0.1', retryStrategy: () => null });
        stranger.on('error', () => {});
        await refused('NOAUTH', stranger.call('TOPICS'));
        stranger.disconnect();
    },
};

for (const name of ['@redis/client', 'ioredis']) {
    console.log(name, require(`${name}/package.json`).version, 'on node', process.version);
}
for (const [name, run] of Object.entries(cases)) {
    await run();
    console.log('ok  ', name);
}
