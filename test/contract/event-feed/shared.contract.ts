/** The guarantees that the feed of the log and the partitioned feed share. */
import { expect, test } from 'vitest';
import { NO_EVENTS, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EventToAppend, FeedOptions, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { logEvent, numberedEvents } from '#test/support/log-events.ts';
import type { FeedReader } from './subscriber.ts';

type Options = Omit<Partial<FeedOptions<unknown>>, 'from'>;
export type Subscribe = (options: Options) => FeedReader;

export interface SharedFeed {
  /** Subscribes to events that are appended from now on, with an independent feed. */
  begin(): Promise<Subscribe>;
  /** Writes to the log; resolves when the events have reached the feed. */
  append(stream: string, from: StreamRevision, events: readonly EventToAppend[]): Promise<unknown>;
  /** The events in their order, without the duplicates that the feed may deliver. */
  distinct(events: readonly StoredEvent[]): readonly StoredEvent[];
}

export function testSharedGuarantees(under: () => SharedFeed): void {
  const append = (...call: Parameters<SharedFeed['append']>) => under().append(...call);
  const revisionsOf = (events: readonly StoredEvent[], stream: string) =>
    under()
      .distinct(events.filter((event) => event.stream === stream))
      .map(({ revision }) => revision);

  test('delivers all fields of the events of the requested streams, and no other events', async () => {
    const [prefix, other] = [newPrefix(), newPrefix()];
    const subscribe = await under().begin();
    const events = [logEvent({ text: 'grüße', list: [1, null] }), logEvent({ n: 2 }, 'Other.v2')];
    const [single] = numberedEvents(1);
    await append(`${prefix}a`, NO_EVENTS, events);
    await append(`${other}x`, NO_EVENTS, numberedEvents(3));
    await append(`${prefix}b`, NO_EVENTS, [single!]);
    const { events: delivered } = await subscribe({ streamPrefixes: [prefix] }).untilCaughtUp();
    expect(byStream(under().distinct(delivered)).map(withoutServersOwn)).toEqual([
      { stream: `${prefix}a`, revision: 0, ...events[0] },
      { stream: `${prefix}a`, revision: 1, ...events[1] },
      { stream: `${prefix}b`, revision: 0, ...single },
    ]);
    for (const event of delivered) expect(Math.abs(event.createdMs - Date.now())).toBeLessThan(600_000);
  });

  test('delivers several prefixes, and a prefix is not a pattern', async () => {
    const [one, two] = [newPrefix(), newPrefix()];
    const subscribe = await under().begin();
    for (const stream of [`${one}a`, `${two}b`, `x${one}c`, `${one.replace('-', '.')}d`]) {
      await append(stream, NO_EVENTS, numberedEvents(1));
    }
    const { events } = await subscribe({ streamPrefixes: [one, two] }).untilCaughtUp();
    expect(byStream(under().distinct(events)).map(({ stream }) => stream)).toEqual([`${one}a`, `${two}b`].toSorted());
  });

  test('delivers new events after the history, in the order of each stream and without gaps', async () => {
    const prefix = newPrefix();
    const subscribe = await under().begin();
    await append(`${prefix}a`, NO_EVENTS, numberedEvents(10));
    const reader = await subscribe({ streamPrefixes: [prefix] }).until((one) => one.has('caught-up'));
    for (let n = 10; n < 60; n += 5) await append(`${prefix}a`, streamRevision(n - 1), numberedEvents(5, n));
    await append(`${prefix}b`, NO_EVENTS, numberedEvents(3));
    await reader.until(({ events }) => under().distinct(events).length >= 63);
    await reader.stop();
    expect(revisionsOf(reader.events, `${prefix}a`)).toEqual(numbers(60));
    expect(revisionsOf(reader.events, `${prefix}b`)).toEqual(numbers(3));
  });

  test.each([1, 7, 500])('yields items of at most %i events', async (maxBatch) => {
    const prefix = newPrefix();
    const subscribe = await under().begin();
    for (const part of ['a', 'b', 'c']) await append(`${prefix}${part}`, NO_EVENTS, numberedEvents(200));
    const { items, events } = await subscribe({ streamPrefixes: [prefix], maxBatch }).untilCaughtUp();
    const sizes = items.flatMap((item) => (item.kind === 'events' ? [item.events.length] : []));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(maxBatch);
    expect(under().distinct(events)).toHaveLength(600);
  });

  test('reports that it has caught up after it has delivered the history', async () => {
    const prefix = newPrefix();
    const subscribe = await under().begin();
    for (const part of ['a', 'b', 'c']) await append(`${prefix}${part}`, NO_EVENTS, numberedEvents(300));
    const { items } = await subscribe({ streamPrefixes: [prefix], maxBatch: 10 }).untilCaughtUp();
    const end = items.findIndex(({ kind }) => kind === 'caught-up');
    const history = items.slice(0, end).flatMap((item) => (item.kind === 'events' ? item.events : []));
    expect(under().distinct(history)).toHaveLength(900);
  });

  test('delivers all events to a slow consumer, with back-pressure', async () => {
    const prefix = newPrefix();
    const subscribe = await under().begin();
    for (let n = 0; n < 2_500; n += 500) await append(`${prefix}a`, streamRevision(n - 1), numberedEvents(500, n));
    const reader = subscribe({ streamPrefixes: [prefix], maxBatch: 50 });
    reader.hold();
    await reader.until(({ events }) => events.length > 0);
    expect(reader.events.length).toBeLessThanOrEqual(50);
    reader.release();
    await reader.until(({ events }) => under().distinct(events).length >= 2_500);
    await reader.stop();
    expect(revisionsOf(reader.events, `${prefix}a`)).toEqual(numbers(2_500));
  });

  test('delivers all events to each of two independent subscribers', async () => {
    const prefix = newPrefix();
    const both = [await under().begin(), await under().begin()];
    await append(`${prefix}a`, NO_EVENTS, numberedEvents(50));
    const readers = both.map((subscribe, index) =>
      subscribe({ streamPrefixes: [prefix], maxBatch: 500 - index * 497 }),
    );
    for (const reader of readers) {
      await reader.untilCaughtUp();
      expect(revisionsOf(reader.events, `${prefix}a`)).toEqual(numbers(50));
    }
  });

  test('ends at once when it is aborted: before it starts, while it waits, and between two items', async () => {
    const prefix = newPrefix();
    const subscribe = await under().begin();
    await append(`${prefix}a`, NO_EVENTS, numberedEvents(50));
    const aborted = subscribe({ streamPrefixes: [prefix], signal: AbortSignal.abort() });
    await aborted.stop();
    expect(aborted.items).toEqual([]);

    const between = subscribe({ streamPrefixes: [prefix], maxBatch: 1 });
    between.hold();
    await between.until(({ events }) => events.length > 0);
    const ended = between.stop();
    between.release();
    await ended;
    expect(between.events.length).toBeLessThan(50);

    await subscribe({ streamPrefixes: [prefix] }).untilCaughtUp();
  });

  test.each([{ streamPrefixes: [] }, { streamPrefixes: [''] }, { streamPrefixes: ['$ce-'] }, { maxBatch: 0 }])(
    'refuses the options %j',
    async (options) => {
      const reader = (await under().begin())({ streamPrefixes: ['a-'], ...options });
      await expect(reader.until(() => false)).rejects.toThrow(/invalid prefix|a feed needs|invalid batch size/);
    },
  );
}

export const newPrefix = () => `feed${newId().replaceAll('-', '')}-`;
export const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

/** There is no order between streams. */
export const byStream = (events: readonly StoredEvent[]) =>
  events.toSorted((a, b) => (a.stream < b.stream ? -1 : a.stream > b.stream ? 1 : 0));

function withoutServersOwn({ stream, revision, id, type, data, metadata }: StoredEvent) {
  return { stream, revision, id, type, data, metadata };
}
