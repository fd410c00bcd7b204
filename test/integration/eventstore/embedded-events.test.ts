/** Events of this process, of other processes and of before the start reach every consumer once and in order. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import {
  connectEventStore,
  type EventStoreClients,
  type EventStore,
  type LogStart,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { startTestEventStore, type TestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent } from '#test/support/log-events.ts';

let server: TestEventStore;
let here: EventStoreClients;
/** Of another process: through gRPC. */
let elsewhere: EventStoreClients;
beforeAll(async () => {
  server = await startTestEventStore();
  here = await connectEventStore({ url: server.url, embedded: server.local });
  elsewhere = await connectEventStore({ url: server.url });
});
afterAll(async () => {
  await Promise.all([here.close(), elsewhere.close()]);
  await server.stop();
});

const streamOf = (prefix: string, n: number) => `${prefix}${n}`;

test('subscribers that begin at any time get the events of all writers once, in order, as they are stored', async () => {
  const prefix = `entity${newId()}-`;
  const writers = [here.store, here.store, elsewhere.store, here.store];
  const written = writers.map((store, n) => write(store, streamOf(prefix, n), 150));
  const followers: Promise<StoredEvent[]>[] = [];
  for (let n = 0; n < 12; n++) {
    followers.push(take(here, prefix, 600, n % 3 === 0 ? await here.feed.head() : null));
    await new Promise(setImmediate);
  }
  await Promise.all(written);
  const stored = await take(elsewhere, prefix, 600, null);
  for (const follower of followers) {
    const events = await follower;
    expect(events).toEqual(stored.slice(stored.length - events.length));
  }
});

test('a repeated append keeps the events of the first one for consumers, not its own', async () => {
  const prefix = `entity${newId()}-`;
  const stream = streamOf(prefix, 0);
  const first = logEvent({ attempt: 1 });
  const again = { ...logEvent({ attempt: 2 }), id: first.id };
  await Promise.all([here.store.append(stream, NO_EVENTS, [first]), here.store.append(stream, NO_EVENTS, [again])]);
  await elsewhere.store.append(streamOf(prefix, 1), NO_EVENTS, [first]);
  await here.store.append(streamOf(prefix, 1), NO_EVENTS, [again]);
  const events = await take(here, prefix, 2, null);
  expect(events.map(({ data }) => data)).toEqual([{ attempt: 1 }, { attempt: 1 }]);
});

test('a consumer that falls behind the events in memory reads on from the log', async () => {
  const prefix = `entity${newId()}-`;
  const stop = new AbortController();
  const items = here.feed.subscribe({ from: 'start', streamPrefixes: [prefix], signal: stop.signal, maxBatch: 5 });
  const slow = items[Symbol.asyncIterator]();
  await here.store.append(streamOf(prefix, 0), NO_EVENTS, [logEvent({ n: 0 })]);
  const revisions: number[] = [];
  const takeItem = async () => {
    const { value } = await slow.next();
    if (value?.kind === 'events') revisions.push(...value.events.map(({ revision }: StoredEvent) => revision));
  };
  while (revisions.length === 0) await takeItem();
  // More than is kept.
  for (let n = 1; n <= 30; n++)
    await here.store.append(streamOf(prefix, 0), streamRevision(n - 1), [logEvent({ n, text: 'x'.repeat(500_000) })]);
  while (revisions.length <= 30) await takeItem();
  expect(revisions).toEqual(Array.from({ length: 31 }, (_, n) => n));
  stop.abort();
  await slow.return?.();
});

async function write(store: EventStore, stream: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const result = await store.append(stream, streamRevision(n - 1), [
      logEvent({ n, text: 'grüße 👋', none: undefined }),
    ]);
    expect(result.kind).toBe('appended');
  }
}

/** The first `count` events, or those up to revision 149 of each of four streams if it begins later. */
async function take(
  { feed }: EventStoreClients,
  prefix: string,
  count: number,
  after: Exclude<LogStart, 'start'> | null,
): Promise<StoredEvent[]> {
  const stop = new AbortController();
  const events: StoredEvent[] = [];
  const newest = new Map<string, number>();
  const isComplete = () => events.length >= count || [...newest.values()].filter((n) => n === 149).length === 4;
  const items = feed.subscribe({ from: after ?? 'start', streamPrefixes: [prefix], signal: stop.signal });
  const reading = (async () => {
    for await (const item of items) {
      if (item.kind !== 'events') continue;
      events.push(...item.events);
      for (const { stream, revision } of item.events) newest.set(stream, revision);
    }
  })();
  await eventually(isComplete, { timeoutMs: 60_000 });
  stop.abort();
  await reading;
  return events;
}
