/* What a post sends to Redis, in how many writes: each wakes both processes. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { type StartedParley, startInProcess } from '#services/testing/in-process.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let server: TestRedis;
let proxy: Server;
let parley: StartedParley;
/** Of the process to Redis. */
let writes: string[] = [];
let channelId: string;

const isCluster = process.env['PARLEY_TEST_REDIS'] === 'cluster';

beforeAll(async () => {
  if (isCluster) return;
  server = await startTestRedis();
  const url = new URL(server.url);
  const { hostname, port } = url;
  proxy = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    client.on('data', (bytes) => {
      writes.push(bytes.toString('latin1'));
      upstream.write(bytes);
    });
    upstream.pipe(client);
    client.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  url.port = String((proxy.address() as AddressInfo).port);
  parley = await startInProcess({ settings: { REDIS_URL: url.href } });
  // The checks of a start look at the newest entities.
  await eventually(async () => {
    expect(await (await fetch(`${parley.url}/health/ready`)).json()).toMatchObject({
      checks: {
        read_model: { detail: { entities_behind: 0 } },
        projection: { detail: { check: { phase: 'waiting' } } },
      },
    });
  });
});
afterAll(async () => {
  await parley?.stop();
  proxy?.close();
  await server?.stop();
});

beforeEach(async () => {
  if (isCluster) return;
  channelId = (await parley.createChannel()).id;
  await post('first');
  await projected(1);
  writes = [];
});

async function post(key?: string): Promise<void> {
  const response = await fetch(`${parley.url}/api/v1/channels/${channelId}/interactions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${parley.apiKey}`,
      'content-type': 'application/json',
      ...(key !== undefined && { 'idempotency-key': `${key}-${channelId}` }),
    },
    body: JSON.stringify({ content: [{ type: 'text', text: 'Hello' }] }),
  });
  expect(response.status).toBe(200);
}

/** Once the projector has taken the event: it saves the last one that it has taken. */
async function projected(revision: number): Promise<void> {
  const witness = `"stream":"channel-${channelId}","revision":${revision}`;
  await eventually(() => expect(writes.some((write) => write.includes(witness))).toBe(true));
}

const COMMAND = /^\*\d+\r\n\$\d+\r\n(\w+)\r\n(?:\$\d+\r\nparley_(\w+)_v\d+\r\n)?/;

/** The commands about the channel and its keys, by write. A heartbeat or a position may share the write with them. */
function commands(): string[][] {
  const isOwn = (command: string) => command.includes(`:${channelId}}`) || command.includes('parley:idempotency');
  return writes
    .map((write) => write.split(/(?<=\r\n)(?=\*\d+\r\n\$\d+\r\n)/).filter(isOwn))
    .filter((own) => own.length > 0)
    .map((own) => own.map((command) => COMMAND.exec(command)).map((parts) => parts?.[2] ?? parts?.[1] ?? '?'));
}

describe.skipIf(isCluster)('a post', () => {
  it('with an idempotency key is two writes to Redis: before its append, and after it', async () => {
    await post('second');
    await projected(2);
    expect(commands()).toEqual([['idempotency_begin'], ['apply_and_publish', 'idempotency_complete']]);
  });

  it('over a socket is two writes, as well', async () => {
    const headers = { authorization: `Bearer ${parley.apiKey}` };
    const answer = await fetch(`${parley.url}/api/v1/channels/${channelId}/websocket_ticket`, {
      method: 'POST',
      headers,
    });
    const { value } = (await answer.json()) as { value: string };
    const url = `${parley.url.replace('http', 'ws')}/api/v1/channels/${channelId}/websocket`;
    const socket = new WebSocket(url, ['parley.v1', `ticket.${value}`]);
    const frames: { frame: string }[] = [];
    socket.addEventListener('message', ({ data }) => void frames.push(JSON.parse(String(data)) as { frame: string }));
    const receives = (frame: string) =>
      eventually(() => expect(frames).toContainEqual(expect.objectContaining({ frame })));
    await once(socket, 'open');
    socket.send('{"frame":"resume"}');
    await receives('caught_up');
    writes = [];
    const data = { content: [{ type: 'text', text: 'Hello' }] };
    socket.send(JSON.stringify({ frame: 'command', id: randomUUID(), type: 'interaction.post', data }));
    await receives('ack');
    await projected(2);
    socket.close();
    // Once a socket is subscribed, the process reads whether its user still takes part.
    const own = commands()
      .map((write) => write.filter((name) => name !== 'mget'))
      .filter((write) => write.length > 0);
    expect(own).toEqual([['idempotency_begin'], ['apply_and_publish', 'idempotency_complete']]);
  });

  it('without a key is one write, and nothing is applied twice', async () => {
    await post();
    await projected(2);
    expect(commands()).toEqual([['apply_and_publish']]);
  });

  it('at the same time as others looks nothing up for itself', async () => {
    const count = 20;
    await Promise.all(Array.from({ length: count }, (_, nth) => post(`at-once-${nth}`)));
    await projected(count + 1);
    const all = commands().flat();
    const times = (name: string) => all.filter((one) => one === name).length;
    expect([times('idempotency_begin'), times('idempotency_complete')]).toEqual([count, count]);
    expect([times('lookup'), times('mget')]).toEqual([0, 0]);
    expect(times('apply_and_publish')).toBeLessThanOrEqual(count);
  });
});
