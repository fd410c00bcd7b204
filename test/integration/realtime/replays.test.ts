/* Replays from the log: those of closed connections end, and organizations share the reads fairly. */
import { once } from 'node:events';
import { get } from 'node:http';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';

import { eventStreamRoutes, RealtimeNode, WebsocketAdmission } from '#libs/features/realtime/index.ts';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { buildHttpServer, type HttpServer } from '#libs/platform/http/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { Upgrades } from '#libs/platform/websocket/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { contextOf, type LiveChannel, newChannel } from '#test/support/realtime/channel-life.ts';
import { type ChannelGrant, LiveNode } from '#libs/platform/live/index.ts';

/** More than a channel keeps in memory; three pages of the log. */
const EVENTS = 1_300;
const STORM = 150;
/** Fits into the memory of a channel. */
const RECENT = 200;

let test: TestPlatform;
let features: Features;
let store: CountingStore;
let node: RealtimeNode;
let server: HttpServer;
let port: number;
/** The channel and organization of the event streams. */
let caller: LiveChannel;
const metrics = createMetrics({ processMetrics: false });

beforeAll(async () => {
  test = await startTestPlatform();
  store = new CountingStore(test.platform.store);
  features = composeFeatures({ ...test.platform, store });
  const access = {
    admit: (grant: ChannelGrant) => grant,
    check: async () => ({ expiresAtMs: null, ageMs: 0 }),
    usersOf: async () => null,
    onChange: () => () => undefined,
  };
  const heads = async (streams: readonly unknown[]) => streams.map(() => 0);
  node = new RealtimeNode(new LiveNode({ ...test.platform, metrics }, { heads }), { ...features.realtime, access });
  const upgrades = new Upgrades();
  upgrades.handle(
    new WebsocketAdmission(node, { tickets: features.realtime.tickets, origins: [], isOwnOrigin: () => false }),
  );
  server = await buildHttpServer({
    routes: (app) => eventStreamRoutes(app, { node, channels: features.channels }),
    authenticator: {
      authenticate: () => ({
        ...caller,
        ...SERVICE,
        scopes: new Set(SERVICE.scopes),
        isMember: false,
        expiresAtMs: null,
      }),
    },
    tokenSecret: test.platform.tokenSecret,
    metrics,
    upgrades,
    info: { title: 'Replays', version: '1' },
  });
  port = Number(new URL(await server.listen({ host: '127.0.0.1', port: 0 })).port);
}, 60_000);
afterAll(async () => {
  await node.stop();
  await server.close();
  await test.stop();
});

const SERVICE = { principalType: 'service', principalId: 's', keyId: 'k', scopes: ['read'] } as const;

async function longChannel(count = EVENTS): Promise<LiveChannel> {
  const channel = await newChannel(features);
  const { commandId, at, actor } = contextOf(channel.organizationId, newId(), 0);
  const metadata = {
    at,
    organizationId: channel.organizationId,
    actor,
    commandId,
    $correlationId: commandId,
    $causationId: commandId,
  };
  const events = Array.from({ length: count - 1 }, (_, n) => ({
    id: newId(),
    type: 'ChannelRenamed.v1',
    data: { name: `name ${n}` },
    metadata,
  }));
  await store.append(`channel-${channel.channelId}`, streamRevision(0), events);
  await features.projector.catchUp('channel', channel.organizationId, channel.channelId);
  return channel;
}

interface Reader {
  /** Whether it has received all events, once and in order. */
  isComplete(): boolean;
  hangUp(): void;
}

interface StreamReader extends Reader {
  /** Of the events that it has received. */
  sequences(): readonly number[];
}

async function socketFrom(channel: LiveChannel): Promise<Reader> {
  const { value } = await features.realtime.tickets.issue({
    ...channel,
    ...SERVICE,
    isMember: false,
    takesPart: false,
    expiresAtMs: null,
  });
  const socket = new WebSocket(`ws://127.0.0.1:${port}/api/v1/channels/${channel.channelId}/websocket?ticket=${value}`);
  await once(socket, 'message');
  let seq = 0;
  socket.on('message', (data: Buffer) => {
    const frame = JSON.parse(data.toString());
    if (frame.frame === 'event' && frame.seq === seq + 1) seq += 1;
  });
  socket.on('error', () => undefined);
  socket.send('{"frame":"resume","after":0}');
  return { isComplete: () => seq === EVENTS, hangUp: () => socket.terminate() };
}

async function streamFrom(channel: LiveChannel, after = 0): Promise<StreamReader> {
  caller = channel;
  const path = `/api/v1/channels/${channel.channelId}/events?after=${after}`;
  const request = get({ port, path, headers: { authorization: 'k' }, agent: false });
  request.on('error', () => undefined);
  const [response] = await once(request, 'response');
  let text = '';
  response.on('data', (chunk: Buffer) => (text += chunk.toString()));
  response.on('error', () => undefined);
  const isComplete = (): boolean => text.includes(`\nid: ${EVENTS}\n`);
  const sequences = (): number[] => Array.from(text.matchAll(/\nid: (\d+)\n/g), ([, id]) => Number(id));
  return { isComplete, sequences, hangUp: () => request.destroy() };
}

describe.each([
  { what: 'sockets', open: socketFrom },
  { what: 'event streams', open: streamFrom },
])('$what that resume and hang up', ({ open }) => {
  it('leave no read of the log, neither running nor waiting', async () => {
    const channel = await longChannel();
    const readers = await Promise.all(Array.from({ length: STORM }, () => open(channel)));
    store.reads = 0;
    for (const reader of readers) reader.hangUp();
    const next = await open(channel);
    await eventually(() => next.isComplete(), { timeoutMs: 30_000 });
    // Its own pages and the state before them, and none for the others.
    expect(store.reads).toBeLessThan(STORM / 5);
    await eventually(() => store.openReads === 0);
    next.hangUp();
  }, 60_000);
});

it('streams that begin near each other, some events ago, read the log once for all of them', async () => {
  const channel = await longChannel(RECENT);
  store.eventsRead = 0;
  const readers = await Promise.all(Array.from({ length: STORM }, (_, n) => streamFrom(channel, n)));
  await eventually(() => {
    for (const [after, reader] of readers.entries()) {
      expect(reader.sequences()).toEqual(Array.from({ length: RECENT - after }, (_, n) => after + n + 1));
    }
  });
  // Of two reads at a time, each reads at most all events and, for its state, those before its position.
  expect(store.eventsRead).toBeLessThan(8 * RECENT);
  for (const reader of readers) reader.hangUp();
});

it('cancels the running read when its subscriber disconnects', async () => {
  const channel = await longChannel();
  const closed = new AbortController();
  const { organizationId, channelId } = channel;
  store.eventsRead = 0;
  const after = sequenceOf(streamRevision(-1));
  const pages = features.realtime.log.framesAfter(organizationId, channelId, after, { signal: closed.signal });
  const first = pages[Symbol.asyncIterator]().next();
  await eventually(() => store.openReads === 1, { everyMs: 0 });
  closed.abort(new Error('closed'));
  await expect(first).rejects.toThrow('closed');
  expect(store.openReads).toBe(0);
  expect(store.eventsRead).toBeLessThan(500);
});

it('serves a socket of another organization while many of one organization replay a long channel', async () => {
  const [crowded, quiet] = [await longChannel(), await longChannel()];
  const crowd = await Promise.all(Array.from({ length: STORM }, () => socketFrom(crowded)));
  const other = await socketFrom(quiet);
  await eventually(() => other.isComplete(), { timeoutMs: 30_000, everyMs: 1 });
  // First come, first served would make it wait for all of them.
  expect(crowd.filter((one) => one.isComplete()).length).toBeLessThan(STORM / 2);
  for (const one of [...crowd, other]) one.hangUp();
}, 60_000);
