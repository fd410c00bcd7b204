/**
 * Contract of every adapter of `PartitionedFeed`. The test file of an adapter calls `describePartitionedFeed` and sets up
 * the feed; its log may contain events of other tests.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GlobalPosition, NO_EVENTS, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import {
  comparePositions,
  type EventToAppend,
  type FeedOptions,
  type PartitionedFeed,
  type ReadCheckpoints,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { numberedEvents } from '#test/support/log-events.ts';
import { byStream, newPrefix, numbers, testSharedGuarantees } from './shared.contract.ts';
import { SavedCheckpoints, numberOf, Subscriber } from './subscriber.ts';

export interface PartitionedFeedUnderTest {
  /** Subscribers of one feed share its partitions; feeds are independent of each other. */
  newFeed(): PartitionedFeed;
  /** Writes to the log; resolves when the events have reached the feed. */
  append(stream: string, from: StreamRevision, events: readonly EventToAppend[]): Promise<void>;
  /** Position of the last event of the log. */
  head(): Promise<GlobalPosition | null>;
  /** Resolves when the feed will not repeat any appended event. */
  settled(): Promise<void>;
  /** Interrupts the connection of the feed. */
  interrupt(): Promise<void>;
  stop(): Promise<void>;
}

export interface SuiteOptions {
  /** Time limit of the set-up. Default: the runner's. */
  readonly setUpMs?: number;
  /** Time limit of a delivery. Default 15,000. */
  readonly deliveryMs?: number;
}

export function describePartitionedFeed(
  adapter: string,
  setUp: () => Promise<PartitionedFeedUnderTest>,
  { setUpMs, deliveryMs = 15_000 }: SuiteOptions = {},
): void {
  describe(`partitioned feed: ${adapter}`, { timeout: deliveryMs * 6 }, () => {
    let under: PartitionedFeedUnderTest;
    beforeAll(async () => {
      under = await setUp();
      // Partitions need a message each.
      await under.append(`${newPrefix()}a`, NO_EVENTS, numberedEvents(1));
    }, setUpMs);
    afterAll(() => under.stop());

    /** A feed that starts at the current ends. */
    const begin = async () => {
      const feed = under.newFeed();
      const ends = await eventually(
        async () => {
          const found = await feed.ends();
          if (found === null) throw new Error('it has no ends');
          return found;
        },
        { timeoutMs: deliveryMs },
      );
      const position = (await under.head())!;
      const checkpoints = new SavedCheckpoints(ends.map((end) => ({ ...end, position })));
      const subscribe = (options: Partial<FeedOptions<ReadCheckpoints>>) =>
        new Subscriber(feed, checkpoints, options, deliveryMs);
      return { feed, checkpoints, subscribe };
    };

    testSharedGuarantees(() => ({
      begin: async () => (await begin()).subscribe,
      append: under.append,
      distinct: firstSights,
    }));

    test('resumes from its checkpoints, without the events before them', async () => {
      const prefix = newPrefix();
      const { checkpoints, subscribe } = await begin();
      for (const part of ['a', 'b', 'c']) {
        const stream = `${prefix}${part}`;
        await under.append(stream, NO_EVENTS, numberedEvents(20));
        await under.settled();
        const head = (await under.head())!;
        const subscriber = subscribe({ streamPrefixes: [prefix] });
        await subscriber.until(() => comparePositions(checkpoints.least, head) >= 0);
        await subscriber.stop();
        expect(new Set(subscriber.events.map((event) => event.stream))).toEqual(new Set([stream]));
        expect(revisionsOf(subscriber.events, stream)).toEqual(numbers(20));
      }
    });

    test('never reports a checkpoint before its events, and reports checkpoints where no event matches', async () => {
      const [prefix, other] = [newPrefix(), newPrefix()];
      const { checkpoints, subscribe } = await begin();
      for (let round = 0; round < 10; round++) {
        await under.append(`${other}${round}`, NO_EVENTS, numberedEvents(100));
        await under.append(`${prefix}${round}`, NO_EVENTS, numberedEvents(20));
      }
      await under.append(`${other}x`, NO_EVENTS, numberedEvents(10));
      const head = (await under.head())!;
      const from = checkpoints.all;
      const subscriber = subscribe({ streamPrefixes: [prefix], maxBatch: 7 });
      await subscriber.until(() => comparePositions(checkpoints.least, head) >= 0);
      await subscriber.stop();
      const all = firstSights(subscriber.events);
      expect(all).toHaveLength(200);
      const saved = new SavedCheckpoints(from);
      const delivered = new Set<string>();
      for (const item of subscriber.items) {
        if (item.kind === 'events') for (const { id } of item.events) delivered.add(id);
        if (item.kind !== 'reached') continue;
        saved.note(item.checkpoints);
        const due = all.filter(({ position }) => comparePositions(position!, saved.least) <= 0);
        expect(due.filter(({ id }) => !delivered.has(id))).toEqual([]);
      }
      const reached = subscriber.items.flatMap((item) => (item.kind === 'reached' ? item.checkpoints : []));
      for (const partition of checkpoints.partitions) {
        const steps = reached.filter((one) => one.partition === partition);
        const positions = steps.map(({ position }) => position);
        expect(positions.toSorted(comparePositions)).toEqual(positions);
        expect(steps.every(({ behind }) => Number.isSafeInteger(behind) && behind >= 0)).toBe(true);
      }
    });

    test('delivers again the events that were not acknowledged by requesting the next item', async () => {
      const prefix = newPrefix();
      const { checkpoints, subscribe } = await begin();
      await under.append(`${prefix}a`, NO_EVENTS, numberedEvents(10));
      const first = subscribe({ streamPrefixes: [prefix], maxBatch: 4 });
      first.hold();
      await first.until(({ events }) => events.length > 0);
      const ended = first.stop();
      first.release();
      await ended;
      expect(first.events.length).toBeLessThanOrEqual(4);
      expect(comparePositions(checkpoints.least, first.events[0]!.position!)).toBeLessThan(0);
      const next = await subscribe({ streamPrefixes: [prefix] }).until((one) => one.has('caught-up'));
      await next.stop();
      expect(revisionsOf(next.events, `${prefix}a`)).toEqual(numbers(10));
    });

    test('a subscriber may end a subscription after any item and subscribe again', async () => {
      const prefix = newPrefix();
      const { feed, checkpoints, subscribe } = await begin();
      await under.append(`${prefix}a`, NO_EVENTS, numberedEvents(30));
      const { signal } = new AbortController();
      const seen: StoredEvent[] = [];
      for (let round = 0; round < 5; round++) {
        const items = feed.subscribe({
          streamPrefixes: [prefix],
          maxBatch: 3,
          signal,
          from: async () => checkpoints.all,
        });
        for await (const item of items) {
          if (item.kind === 'reached') checkpoints.note(item.checkpoints);
          if (item.kind !== 'events') continue;
          seen.push(...item.events);
          break;
        }
      }
      expect(seen.length).toBeGreaterThan(0);
      const last = await subscribe({ streamPrefixes: [prefix] }).until((one) => one.has('caught-up'));
      await last.stop();
      expect(revisionsOf([...seen, ...last.events], `${prefix}a`)).toEqual(numbers(30));
    });

    test('assigns each partition to one subscriber, and to another once that one has left', async () => {
      const prefix = newPrefix();
      const { checkpoints, subscribe } = await begin();
      const subscribers = [subscribe({ streamPrefixes: [prefix] }), subscribe({ streamPrefixes: [prefix] })];
      const [leaving, staying] = [subscribers[0]!, subscribers[1]!];
      const assignedPartitions = () => subscribers.flatMap(({ partitions }) => partitions).toSorted();
      await leaving.until(
        ({ partitions }) => partitions.length > 0 && partitions.length < checkpoints.partitions.length,
      );
      await staying.until(
        ({ partitions }) => partitions.length > 0 && assignedPartitions().length === checkpoints.partitions.length,
      );
      expect(assignedPartitions()).toEqual(checkpoints.partitions);

      const streams = Array.from({ length: 24 }, (_, n) => `${prefix}${n}`);
      for (const stream of streams) await under.append(stream, NO_EVENTS, numberedEvents(3));
      const both = () => firstSights(subscribers.flatMap(({ events }) => events));
      await staying.until(() => both().length === 72);
      for (const { events } of subscribers) expect(events.length).toBeGreaterThan(0);
      for (const stream of streams) expect(revisionsOf(both(), stream)).toEqual(numbers(3));

      await leaving.stop();
      await staying.until(({ partitions }) => partitions.length === checkpoints.partitions.length);
      for (const stream of streams) await under.append(stream, streamRevision(2), numberedEvents(1, 3));
      const newEvents = () => firstSights(staying.events).filter(({ revision }) => revision === 3);
      await staying.until(() => newEvents().length === 24);
      await staying.stop();
      expect(newEvents().map(({ stream }) => stream)).toEqual(streams.toSorted());
    });

    test('resumes after an interruption from the acknowledged items', async () => {
      const prefix = newPrefix();
      const { subscribe } = await begin();
      await under.append(`${prefix}a`, NO_EVENTS, numberedEvents(10));
      const subscriber = await subscribe({ streamPrefixes: [prefix] }).until((one) => one.has('caught-up'));
      await under.interrupt();
      await under.append(`${prefix}a`, streamRevision(9), numberedEvents(10, 10));
      await subscriber.until(({ events }) => events.some(({ revision }) => revision === 19));
      await subscriber.stop();
      expect(subscriber.has('lost')).toBe(false);
      expect(revisionsOf(subscriber.events, `${prefix}a`)).toEqual(numbers(20));
    });

    test('reads the checkpoints again after a failure', async () => {
      const prefix = newPrefix();
      const { checkpoints, subscribe } = await begin();
      await under.append(`${prefix}a`, NO_EVENTS, numberedEvents(5));
      let asked = 0;
      const subscriber = subscribe({
        streamPrefixes: [prefix],
        from: async () => {
          if (++asked <= 2) throw new Error('the store of the checkpoints is unavailable');
          return checkpoints.all;
        },
      });
      await subscriber.until((one) => one.has('caught-up'));
      await subscriber.stop();
      expect(asked).toBeGreaterThan(2);
      expect(revisionsOf(subscriber.events, `${prefix}a`)).toEqual(numbers(5));
    });

    test('yields lost, and ends, where the events after a checkpoint are missing', async () => {
      const { feed, checkpoints } = await begin();
      const ahead = checkpoints.all.map((one) => ({ ...one, checkpoint: `${numberOf(one.checkpoint) + 1_000_000n}:` }));
      const subscriber = new Subscriber(feed, new SavedCheckpoints(ahead), { streamPrefixes: ['a-'] }, deliveryMs);
      await subscriber.until((one) => one.has('lost'));
      await subscriber.stop();
      expect(subscriber.items.at(-1)?.kind).toBe('lost');
      expect(subscriber.events).toEqual([]);
    });
  });
}

/** Each event once, by stream, in the order of the first deliveries. */
function firstSights(events: readonly StoredEvent[]): readonly StoredEvent[] {
  const byId = new Map<string, StoredEvent>();
  for (const event of events) if (!byId.has(event.id)) byId.set(event.id, event);
  return byStream([...byId.values()]);
}

function revisionsOf(events: readonly StoredEvent[], stream: string): number[] {
  return firstSights(events.filter((event) => event.stream === stream)).map(({ revision }) => revision);
}
