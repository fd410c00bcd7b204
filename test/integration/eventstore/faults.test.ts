/** The event store is killed, paused and restarted. The clients are not restarted. */
import { Metadata, status } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { newId } from '#libs/kernel/ids.ts';
import {
  connectEventStore,
  type EventStore,
  type EventToAppend,
  type LogFeed,
} from '#libs/platform/eventstore/index.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually as eventuallyWithin } from '#test/support/eventually.ts';
import { logEvent, numberedEvents } from '#test/support/log-events.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';
import { startMisbehavingServer } from './misbehaving-server.ts';

/** A container restarts slowly on a busy machine. These limits only end tests that hang. */
vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 });
const eventually = <T>(probe: () => T | Promise<T>): Promise<T> => eventuallyWithin(probe, { timeoutMs: 60_000 });

/** Serves again at the end of each test. */
let server: TestEventStoreProcess;
beforeAll(async () => {
  server = await startTestEventStore({ mode: 'process' });
});
afterAll(() => server?.stop());

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

test('calls fail at once after the server was killed, and succeed as soon as it is back', async () => {
  const { store } = await setUp();
  const stream = newStream();
  await store.append(stream, NO_EVENTS, numberedEvents(3));
  await server.kill9();
  for (let round = 0; round < 3; round++) {
    expect((await faultOf(store.append(stream, streamRevision(2), numberedEvents(1, 3)))).status).toBe(503);
    expect((await faultOf(revisions(store, stream))).code).toBe('store_unavailable');
    expect((await faultOf(store.ping())).code).toBe('store_unavailable');
  }
  expect((await faultOf(store.append(stream, streamRevision(2), numberedEvents(1)))).code).toBe('store_unavailable');
  await server.restart();
  await eventually(() => store.ping());
  expect(await store.append(stream, streamRevision(2), numberedEvents(1, 3))).toMatchObject({ kind: 'appended' });
  expect(await revisions(store, stream)).toEqual([0, 1, 2, 3]);
});

test('a read ends at once when its signal aborts, with events waiting and with a silent server', async () => {
  const { store } = await setUp();
  const stream = newStream();
  await store.append(stream, NO_EVENTS, numberedEvents(600));
  const taken = new AbortController();
  let events = 0;
  const taking = async (): Promise<void> => {
    for await (const _event of store.readStream(stream, { signal: taken.signal })) {
      events += 1;
      if (events === 10) taken.abort(new Error('enough'));
    }
  };
  await expect(taking()).rejects.toThrow('enough');
  expect(events).toBeLessThan(600);
  await server.pause();
  const silent = new AbortController();
  const { signal } = silent;
  const waiting = Array.fromAsync(store.readStream(stream, { signal, deadlineMs: 600_000 }));
  setImmediate(() => silent.abort(new Error('gone')));
  await expect(waiting).rejects.toThrow('gone');
  await expect(Array.fromAsync(store.readStream(stream, { signal }))).rejects.toThrow('gone');
  await server.resume();
  expect(await revisions(store, stream)).toHaveLength(600);
});

test('appends in progress when the server is killed have an unknown outcome and can be repeated', async () => {
  const { store } = await setUp();
  await store.append(newStream(), NO_EVENTS, numberedEvents(1));
  const attempts = Array.from({ length: 50 }, () => ({ stream: newStream(), events: numberedEvents(100) }));
  const send = ({ stream, events }: (typeof attempts)[number]) => store.append(stream, NO_EVENTS, events);
  const outcomes = attempts.map((attempt) => outcomeOf(send(attempt)));
  await server.kill9();
  const known = await Promise.all(outcomes);
  expect(known).toContain('outcome_unknown');
  await server.restart();
  await eventually(() => store.ping());
  for (const attempt of attempts) {
    expect(await send(attempt)).toMatchObject({ kind: 'appended', revision: 99 });
    expect(await revisions(store, attempt.stream)).toHaveLength(100);
  }
});

test('reads require the leader: after the refusal of a follower they continue at the leader that it names', async () => {
  const { store: ofLeader } = await setUp();
  const stream = newStream();
  await ofLeader.append(stream, NO_EVENTS, numberedEvents(3));
  const { hostname, port } = new URL(server.url);
  let refused = 0;
  // It has no requests so far. Like EventStoreDB, it refuses only requests that require the leader.
  const follower = await startMisbehavingServer({
    read(call) {
      if (call.metadata.get('requires-leader')[0] !== 'true') return call.end();
      const metadata = new Metadata();
      metadata.set('exception', 'not-leader');
      metadata.set('leader-endpoint-host', hostname);
      metadata.set('leader-endpoint-port', port);
      refused += 1;
      call.emit('error', { code: status.NOT_FOUND, details: 'Leader info available', metadata });
    },
  });
  cleanUps.push(() => follower.stop());
  const { store, feed, close } = await connectEventStore({ url: follower.url });
  cleanUps.push(close);
  await expect(revisions(store, stream)).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(await eventually(() => revisions(store, stream))).toEqual([0, 1, 2]);
  expect(await feed.head()).not.toBeNull();
  expect(refused).toBeGreaterThan(0);
});

test('calls to a silent server fail within the deadline, and succeed when it responds again', async () => {
  const { store } = await setUp();
  const stream = newStream();
  await store.append(stream, NO_EVENTS, numberedEvents(3));
  const late = numberedEvents(1, 3);
  await server.pause();
  const faults = await Promise.all([
    faultOf(store.append(stream, streamRevision(2), late)),
    faultOf(revisions(store, stream)),
    faultOf(store.ping()),
  ]);
  expect(faults.map(({ code }) => code)).toEqual(['outcome_unknown', 'store_unavailable', 'store_unavailable']);
  await server.resume();
  await eventually(() => store.ping());
  expect(await store.append(stream, streamRevision(2), late)).toMatchObject({ kind: 'appended', revision: 3 });
  expect(await revisions(store, stream)).toEqual([0, 1, 2, 3]);
});

test('calls to a server that is silent from the start fail within the deadline', async () => {
  const { store } = await setUp();
  await server.pause();
  expect((await faultOf(store.append(newStream(), NO_EVENTS, numberedEvents(1)))).code).toBe('store_unavailable');
  await server.resume();
  await eventually(() => store.ping());
  expect(await store.append(newStream(), NO_EVENTS, numberedEvents(1))).toMatchObject({ kind: 'appended' });
});

test('a feed detects a silent server, and delivers all events when it responds again', async () => {
  const interruptions: unknown[] = [];
  const { store, feed } = await setUp({
    livenessMs: 200,
    onInterruption: (error: unknown) => interruptions.push(error),
  });
  const stream = newStream();
  await store.append(stream, NO_EVENTS, numberedEvents(3));
  const seen = follow(feed, stream);
  await eventually(() => expect(seen).toEqual([0, 1, 2]));
  await server.pause();
  await eventually(() => expect(interruptions).toContainEqual(expect.any(Fault)));
  await server.resume();
  await eventually(() => store.ping());
  await store.append(stream, streamRevision(2), numberedEvents(3, 3));
  await eventually(() => expect([...new Set(seen)]).toEqual([0, 1, 2, 3, 4, 5]));
});

test('a feed that starts before its server waits for it', async () => {
  const { store, feed } = await setUp();
  const stream = newStream();
  await store.append(stream, NO_EVENTS, numberedEvents(3));
  await server.kill9();
  const seen = follow(feed, stream);
  await faultOf(store.ping());
  await server.restart();
  await eventually(() => expect(seen).toEqual([0, 1, 2]));
});

test('a feed reconnects after the server was killed without any other call', async () => {
  const { store, feed } = await setUp();
  const stream = newStream();
  await store.append(stream, NO_EVENTS, numberedEvents(3));
  const seen = follow(feed, stream);
  await eventually(() => expect(seen).toEqual([0, 1, 2]));
  for (let round = 1; round <= 2; round++) {
    await server.kill9();
    await server.restart();
    const written = eventually(() => store.append(stream, streamRevision(round + 1), numberedEvents(1)));
    expect(await written).toMatchObject({ kind: 'appended' });
    await eventually(() => expect(seen.at(-1)).toBe(round + 2));
  }
  expect(seen).toEqual([0, 1, 2, 3, 4]);
});

test('under load and repeated kills every acknowledged event is stored once, in order, and delivered by the feed', async () => {
  const { store, feed } = await setUp();
  const streams = Array.from({ length: 4 }, newStream);
  const followers = streams.map((stream) => follow(feed, stream));
  const stop = new AbortController();
  const writers = streams.map((stream) => writeUntil(stop.signal, store, stream));
  for (let round = 0; round < (IN_CAMPAIGN ? 5 : 2); round++) {
    await eventually(() => store.ping());
    const before = writers.map(({ acknowledged }) => acknowledged.length);
    await eventually(() => writers.every(({ acknowledged }, index) => acknowledged.length > (before[index] ?? 0) + 20));
    await server.kill9();
    await server.restart();
  }
  await eventually(() => store.ping());
  stop.abort();
  await Promise.all(writers.map(({ done }) => done));
  for (const [index, stream] of streams.entries()) {
    const ids: string[] = [];
    for await (const event of store.readStream(stream)) ids.push(event.id);
    expect(ids).toEqual(writers[index]?.acknowledged);
    await eventually(() => expect([...new Set(followers[index])]).toEqual(ids.map((_, revision) => revision)));
  }
});

test('a cluster URL works, and survives kills as well', async () => {
  const url = `esdb+discover://127.0.0.1:${server.port}?tls=false&maxDiscoverAttempts=1&discoveryInterval=50`;
  const { store, feed, close } = await connectEventStore({ url });
  cleanUps.push(close);
  const stream = newStream();
  await store.append(stream, NO_EVENTS, numberedEvents(1));
  const seen = follow(feed, stream);
  await eventually(() => expect(seen).toEqual([0]));
  await server.kill9();
  const while_away = Array.from({ length: 10 }, () =>
    faultOf(store.append(stream, streamRevision(0), numberedEvents(1))),
  );
  expect((await Promise.all(while_away)).map(({ status }) => status)).toEqual(while_away.map(() => 503));
  await server.restart();
  await eventually(() => store.ping());
  expect(await store.append(stream, streamRevision(0), numberedEvents(1))).toMatchObject({ kind: 'appended' });
  await eventually(() => expect(seen).toEqual([0, 1]));
});

async function setUp(options: { livenessMs?: number; onInterruption?: (error: unknown) => void } = {}) {
  const { store, feed, close } = await connectEventStore({ url: server.url, ...options });
  cleanUps.push(close);
  return { store, feed };
}

/** Appends one event at a time, retrying as a command does: same event, same expected revision. */
function writeUntil(signal: AbortSignal, store: EventStore, stream: string) {
  const acknowledged: string[] = [];
  const write = async (event: EventToAppend) => {
    for (;;) {
      const expected = streamRevision(acknowledged.length - 1);
      const outcome = await outcomeOf(store.append(stream, expected, [event]));
      if (outcome === 'appended') return acknowledged.push(event.id);
      if (outcome === 'conflict') throw new Error(`a conflict with nobody in ${stream}`);
    }
  };
  const run = async () => {
    while (!signal.aborted) await write(logEvent({ n: acknowledged.length }));
  };
  return { acknowledged, done: run() };
}

/** The revisions of `stream` as a feed delivers them, for as long as the test runs. */
function follow(feed: LogFeed, stream: string): number[] {
  const seen: number[] = [];
  const abort = new AbortController();
  const consume = async () => {
    const items = feed.subscribe({ from: 'start', streamPrefixes: [stream], signal: abort.signal });
    for await (const item of items) {
      if (item.kind === 'events') seen.push(...item.events.map(({ revision }) => revision));
    }
  };
  const done = consume();
  cleanUps.push(async () => {
    abort.abort();
    await done;
  });
  return seen;
}

const newStream = () => `entity-${newId()}`;

async function revisions(store: EventStore, stream: string): Promise<number[]> {
  const read: number[] = [];
  for await (const event of store.readStream(stream)) read.push(event.revision);
  return read;
}

async function outcomeOf(append: ReturnType<EventStore['append']>): Promise<string> {
  try {
    return (await append).kind;
  } catch (error) {
    if (error instanceof Fault) return error.code;
    throw error;
  }
}

/** The fault of `call`, which must fail although the store does not answer. */
async function faultOf(call: Promise<unknown>): Promise<Fault> {
  const error: unknown = await call.then(
    () => new Error('it succeeded'),
    (reason: unknown) => reason,
  );
  if (error instanceof Fault) return error;
  throw error;
}
