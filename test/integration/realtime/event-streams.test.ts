/* Event streams and their connections: clients that disconnect, stall or send HEAD leave nothing open. */
import { connect, type Socket } from 'node:net';
import { promisify } from 'node:util';

import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';

import { eventStreamRoutes, RealtimeNode } from '#libs/features/realtime/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { buildHttpServer, type HttpServer } from '#libs/platform/http/index.ts';
import { LiveNode, encodeValue, FRAME_FLAG, channelTopic, snapshotJson } from '#libs/platform/live/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { contextOf, createChannel } from '#test/support/realtime/channel-life.ts';

/** Ten times as fast, with all times that are counted in ticks. */
const TICK_MS = 100;
const ORGANIZATION = newId();

let test: TestPlatform;
let features: Features;
let node: RealtimeNode;
let server: HttpServer;
let port: number;
const metrics = createMetrics({ processMetrics: false });
const sockets: Socket[] = [];
/** Reads of a log's head wait for the gate; `looks` counts them. */
let gate = Promise.resolve();
let looks = 0;

beforeAll(async () => {
  test = await startTestPlatform();
  features = composeFeatures(test.platform);
  const { log } = features.realtime;
  node = new RealtimeNode(
    new LiveNode({ ...test.platform, metrics }, { heads: async (streams) => streams.map(() => 0) }, TICK_MS),
    {
      ...features.realtime,
      access: {
        admit: (grant) => grant,
        check: async () => ({ expiresAtMs: null, ageMs: 0 }),
        usersOf: async () => null,
        onChange: () => () => undefined,
      },
      log: {
        category: log.category,
        async head(organizationId, channelId) {
          looks += 1;
          await gate;
          return log.head(organizationId, channelId);
        },
        refuseDeleted: async () => undefined,
        framesAfter: (organizationId, channelId, after) => log.framesAfter(organizationId, channelId, after),
      },
    },
  );
  const scopes = new Set(['read']);
  const ids = { organizationId: ORGANIZATION, principalId: 's', keyId: 'k', isMember: false, expiresAtMs: null };
  server = await buildHttpServer({
    routes: (app) => eventStreamRoutes(app, { node, channels: features.channels }),
    authenticator: { authenticate: () => ({ ...ids, principalType: 'service', scopes }) },
    tokenSecret: test.platform.tokenSecret,
    metrics,
    info: { title: 'Streams', version: '1' },
  });
  port = Number(new URL(await server.listen({ host: '127.0.0.1', port: 0 })).port);
});
afterEach(() => {
  gate = Promise.resolve();
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(async () => {
  await node.stop();
  await server.close();
  await test.stop();
});

async function aChannel(): Promise<string> {
  const channelId = newId();
  if (!(await createChannel(features, { organizationId: ORGANIZATION, channelId }))) throw new Error('not created');
  return channelId;
}

interface Client {
  readonly socket: Socket;
  received: string;
}

/** On a separate connection, which is kept alive. */
function ask(channelId: string, { method = 'GET', query = '' } = {}): Client {
  const socket = connect({ host: '127.0.0.1', port });
  sockets.push(socket);
  const client: Client = { socket, received: '' };
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => (client.received += chunk.toString()));
  socket.write(
    `${method} /api/v1/channels/${channelId}/events${query} HTTP/1.1\r\nhost: x\r\nauthorization: k\r\n\r\n`,
  );
  return client;
}

/** Open event streams, as the node counts them with each tick. */
async function listeners(): Promise<number> {
  const text = await metrics.scrape();
  return Number(/^parley_realtime_subscribers\{form="event-stream"\} (\d+)/m.exec(text)?.[1]);
}

const isFollowing = (client: Client): Promise<unknown> => eventually(() => client.received.includes('"seq":1,'));

const connections = (): Promise<number> => promisify(server.app.server.getConnections.bind(server.app.server))();

function holdBack(): () => void {
  const held = Promise.withResolvers<void>();
  gate = held.promise;
  looks = 0;
  return () => held.resolve();
}

it('HEAD is answered without a body, and the connection stays open', async () => {
  const channelId = await aChannel();
  const client = ask(channelId, { method: 'HEAD' });
  client.socket.write('HEAD /health/live HTTP/1.1\r\nhost: x\r\n\r\n');
  await eventually(() => client.received.split('HTTP/1.1 200').length === 3);
  expect(client.received).toContain('content-type: text/event-stream');
  const other = ask(channelId, { query: '?after=0' });
  await isFollowing(other);
  await eventually(async () => (await listeners()) === 1);
});

it('a client that disconnects before the stream starts leaves nothing open', async () => {
  const release = holdBack();
  const channelId = await aChannel();
  const gone = ask(channelId, { query: '?after=0' });
  await eventually(() => looks === 1);
  const stays = ask(channelId, { query: '?after=0' });
  gone.socket.resetAndDestroy();
  await eventually(async () => (await connections()) === 1);
  release();
  await isFollowing(stays);
  await eventually(async () => (await listeners()) === 1);
  expect(stays.socket.destroyed).toBe(false);
});

it('a channel that is closed while a sequence is checked is answered 503, and opened again by the next request', async () => {
  const channelId = await aChannel();
  const first = ask(channelId, { query: '?after=0' });
  await isFollowing(first);
  const release = holdBack();
  const late = ask(channelId, { query: '?after=2' });
  await eventually(() => looks === 1);
  first.socket.destroy();
  await eventually(() => node.live.streams.size === 0);
  await features.channels.update(contextOf(ORGANIZATION, newId(), 1), channelId, { name: 'Another name' });
  release();
  await eventually(() => late.received.includes('\r\n\r\n'));
  expect(late.received).toMatch(/^HTTP\/1\.1 503 /);
});

/** More than the buffers between the two. */
async function flood(channelId: string, times: number): Promise<void> {
  const text = 'x'.repeat(200_000);
  const message = encodeValue({ flags: FRAME_FLAG.incomplete, key: 'draft:1', json: snapshotJson('1', text) });
  for (let n = 0; n < times; n++) {
    const topic = channelTopic(ORGANIZATION, channelId);
    await test.platform.redis.send(topic, (node) => node.spublish(topic, message));
  }
}

it('a client that reads nothing for 20 ticks is disconnected; one that reads slowly is not', async () => {
  const channelId = await aChannel();
  const [stalled, slow] = [1, 2].map(() => ask(channelId, { query: '?after=0&include=incomplete' })) as [
    Client,
    Client,
  ];
  await Promise.all([isFollowing(stalled), isFollowing(slow)]);
  stalled.socket.pause();
  await flood(channelId, 60);
  const flooded = node.live.now;
  await eventually(async () => (await listeners()) === 1);
  // Some ticks pass while the values are published. The gauge is that of the previous tick.
  expect(node.live.now - flooded).toBeLessThanOrEqual(22);
  expect(slow.socket.closed).toBe(false);
});

it('a stream that is closed still sends its unread frames, and the reason', async () => {
  const channelId = await aChannel();
  const client = ask(channelId, { query: '?after=0&include=incomplete' });
  await isFollowing(client);
  client.socket.pause();
  await flood(channelId, 60);
  const ended = node.stop();
  client.socket.resume();
  await ended;
  await eventually(() => client.received.endsWith('\r\n0\r\n\r\n'));
  expect(client.received).toContain('event: close\ndata: {"code":1012');
});
