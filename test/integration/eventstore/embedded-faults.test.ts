/** The thread of the embedded event store dies, is restarted, or is blocked. The adapter without gRPC is not restarted. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterEach, expect, test } from 'vitest';
import { LocalLog } from '#infra/embedded-eventstore/index.ts';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { newId } from '#libs/kernel/ids.ts';
import { connectEventStore, type EventStore } from '#libs/platform/eventstore/index.ts';
import { silentLog } from '#libs/platform/lifecycle/index.ts';
import { startEmbeddedEventStore } from '#services/standalone/stores.ts';
import { EventStoreThread } from '#test/support/event-store-thread.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent, numberedEvents } from '#test/support/log-events.ts';
import { onFreePort } from '#test/support/on-free-port.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

test('appends under way when the thread dies have an unknown outcome, and repetitions store each once', async () => {
  const { store, kill } = await startSupervised();
  const attempts = Array.from({ length: 50 }, () => ({ stream: newStream(), events: numberedEvents(50) }));
  const send = ({ stream, events }: (typeof attempts)[number]) => store.append(stream, NO_EVENTS, events);
  const outcomes = attempts.map((attempt) => outcomeOf(send(attempt)));
  // The messages are on their way.
  await new Promise(setImmediate);
  await kill();
  const known = new Set(await Promise.all(outcomes));
  expect(known).toContain('outcome_unknown');
  expect([...known].filter((outcome) => outcome !== 'outcome_unknown' && outcome !== 'appended')).toEqual([]);
  await eventually(() => store.ping());
  for (const attempt of attempts) {
    expect(await send(attempt)).toMatchObject({ kind: 'appended', revision: 49 });
    expect(await revisions(store, attempt.stream)).toHaveLength(50);
  }
});

test('calls fail at once without the thread, and succeed when it is restarted', async () => {
  const { store, kill } = await startSupervised();
  const stream = newStream();
  await store.append(stream, NO_EVENTS, numberedEvents(3));
  await kill();
  expect(await outcomeOf(store.append(stream, streamRevision(2), numberedEvents(1)))).toBe('store_unavailable');
  await expect(revisions(store, stream)).rejects.toMatchObject({ code: 'store_unavailable' });
  await expect(store.ping()).rejects.toMatchObject({ code: 'store_unavailable' });
  await eventually(() => store.ping());
  expect(await store.append(stream, streamRevision(2), numberedEvents(1, 3))).toMatchObject({ revision: 3 });
  expect(await revisions(store, stream)).toEqual([0, 1, 2, 3]);
});

test('calls to a blocked thread end at their deadline, and what came too late is not written', async () => {
  const { store, thread } = await startBlockable();
  const stream = newStream();
  await store.append(stream, NO_EVENTS, numberedEvents(3));
  const resume = thread.pause();
  const late = outcomeOf(store.append(stream, streamRevision(2), [logEvent({ n: 3 })], { deadlineMs: 50 }));
  const left = new AbortController();
  const leaving = Array.fromAsync(store.readStream(stream, { signal: left.signal, deadlineMs: 600_000 }));
  setImmediate(() => left.abort(new Error('gone')));
  await expect(leaving).rejects.toThrow('gone');
  await expect(Array.fromAsync(store.readStream(stream, { deadlineMs: 50 }))).rejects.toMatchObject({
    code: 'store_unavailable',
  });
  expect(await late).toBe('outcome_unknown');
  resume();
  expect(await store.append(stream, streamRevision(2), [logEvent({ n: 'next' })])).toMatchObject({ revision: 3 });
});

test('appends beyond the limit of unanswered bytes are refused, and later ones are accepted', async () => {
  const { store, thread } = await startBlockable();
  const resume = thread.pause();
  const large = () => store.append(newStream(), NO_EVENTS, [logEvent({ text: 'x'.repeat(1_000_000) })]);
  const outcomes = Array.from({ length: 80 }, () => outcomeOf(large()));
  expect(await Promise.race(outcomes)).toBe('overloaded');
  resume();
  const all = await Promise.all(outcomes);
  expect(all.filter((outcome) => outcome === 'overloaded').length).toBeGreaterThan(10);
  expect(await outcomeOf(large())).toBe('appended');
});

async function startSupervised() {
  const dataDir = await temporaryFolder();
  const threads: Worker[] = [];
  const remember = (worker: Worker): void => void threads.push(worker);
  process.on('worker', remember);
  cleanUps.push(() => process.off('worker', remember));
  const onLost = (error: unknown): never => {
    throw error;
  };
  const server = await startEmbeddedEventStore({ dataDir, log: silentLog, onLost });
  cleanUps.push(() => server.stop());
  const { store, close } = await connectEventStore({ url: server.url, embedded: server.local });
  cleanUps.push(close);
  return { store, kill: async () => void (await threads.at(-1)?.terminate()) };
}

/** In a thread of its own, which blocks no other store. */
async function startBlockable() {
  const dataDir = await temporaryFolder();
  const thread = new EventStoreThread();
  const local = new LocalLog();
  return onFreePort(async (port) => {
    const started = await thread.start({ dataDir, port, insecure: true });
    if (started.localPort !== undefined) local.attach(started.localPort);
    cleanUps.push(() => started.stop());
    const { store, close } = await connectEventStore({ url: `esdb://127.0.0.1:${port}?tls=false`, embedded: local });
    cleanUps.push(close);
    return { store, thread };
  });
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'parley-test-embedded-'));
  cleanUps.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const newStream = () => `entity-${newId()}`;

async function revisions(store: EventStore, stream: string): Promise<number[]> {
  return (await Array.fromAsync(store.readStream(stream))).map(({ revision }) => revision);
}

async function outcomeOf(append: ReturnType<EventStore['append']>): Promise<string> {
  try {
    return (await append).kind;
  } catch (error) {
    if (error instanceof Fault) return error.code;
    throw error;
  }
}
