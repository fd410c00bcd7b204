/**
 * Contract of every adapter of `LogFeed`. An adapter's test file calls `describeEventFeed` with the
 * way to set up its feed; the log behind it may hold events of other tests.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GlobalPosition, NO_EVENTS, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import {
  comparePositions,
  encodePosition,
  type EventStore,
  type EventToAppend,
  type FeedOptions,
  type LogFeed,
  type LogStart,
  type StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { numberedEvents } from '#test/support/log-events.ts';
import { byStream, newPrefix, numbers, testSharedGuarantees } from './shared.contract.ts';
import { FeedReader } from './subscriber.ts';

export interface FeedUnderTest {
  readonly feed: LogFeed;
  /** Writes to the log that the feed reads. */
  readonly store: EventStore;
  /** Interrupts the connection of the feed. */
  interrupt(): Promise<void>;
  stop(): Promise<void>;
}

const DELIVERY_MS = 15_000;
/** Interruptions in one test. */
const INTERRUPTIONS = 3;

export function describeEventFeed(adapter: string, setUp: () => Promise<FeedUnderTest>): void {
  describe(`event feed: ${adapter}`, { timeout: DELIVERY_MS * 6 }, () => {
    let under: FeedUnderTest;
    beforeAll(async () => {
      under = await setUp();
    });
    afterAll(() => under.stop());

    /** Resolves after the append, so that events of consecutive calls have this order in the log. */
    const append = async (stream: string, from: StreamRevision, events: readonly EventToAppend[]) => {
      const appended = await under.store.append(stream, from, events);
      if (appended.kind !== 'appended' || !appended.position) throw new Error(`not appended to ${stream}`);
      return appended.position;
    };
    const reader = (options: Partial<FeedOptions<LogStart>>) =>
      new FeedReader(
        (signal) => under.feed.subscribe({ from: 'start', streamPrefixes: [], signal, ...options }),
        DELIVERY_MS,
      );
    const revisionsOf = (events: readonly StoredEvent[]) => events.map(({ revision }) => revision);

    /** A reader of the events from now on: the tests below read the whole log. */
    const begin = async () => {
      const from = (await under.feed.head()) ?? 'start';
      return (options: Partial<FeedOptions<LogStart>>) => reader({ from, ...options });
    };
    // The feed of the log delivers no duplicates, except after an interruption.
    testSharedGuarantees(() => ({ begin, append, distinct: (events) => events }));

    test('delivers all streams except those of the system when all are requested', async () => {
      const position = await append(`${newPrefix()}a`, NO_EVENTS, numberedEvents(1));
      const streams = [`${newPrefix()}a`, `${newPrefix()}b`];
      for (const stream of streams) await append(stream, NO_EVENTS, numberedEvents(2));
      const { events } = await reader({ streamPrefixes: 'all', from: position }).untilCaughtUp();
      expect(byStream(events).map(({ stream }) => stream)).toEqual(
        streams.toSorted().flatMap((stream) => [stream, stream]),
      );
    });

    test('positions grow, and a feed from one of them begins with the event after it', async () => {
      const prefix = newPrefix();
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(20));
      const { events } = await reader({ streamPrefixes: [prefix] }).untilCaughtUp();
      const positions = events.map(positionOf);
      expect(positions.toSorted(comparePositions)).toEqual(positions);
      expect(new Set(positions.map(encodePosition)).size).toBe(20);
      for (const resumeAfter of [0, 7, 19]) {
        const from = positions[resumeAfter] ?? 'start';
        const resumed = await reader({ streamPrefixes: [prefix], from }).untilCaughtUp();
        expect(revisionsOf(resumed.events)).toEqual(numbers(20).slice(resumeAfter + 1));
      }
    });

    test('reports checkpoints where no event matches', async () => {
      const [prefix, other] = [newPrefix(), newPrefix()];
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(1));
      const last = await append(`${other}x`, NO_EVENTS, numberedEvents(2000));
      const following = reader({ streamPrefixes: [prefix] });
      await following.until(({ items }) => {
        const checkpoint = items.findLast((item) => item.kind === 'checkpoint');
        return checkpoint !== undefined && comparePositions(checkpoint.position, last) >= 0;
      });
      await following.stop();
      expect(following.events).toHaveLength(1);
    });

    test('a checkpoint is after all delivered events and before all others', async () => {
      const [prefix, other] = [newPrefix(), newPrefix()];
      for (let round = 0; round < 10; round++) {
        await append(`${other}${round}`, NO_EVENTS, numberedEvents(300));
        await append(`${prefix}${round}`, NO_EVENTS, numberedEvents(50));
      }
      const { items } = await reader({ streamPrefixes: [prefix], maxBatch: 20 }).untilCaughtUp();
      const positions = items.flatMap((item) => {
        if (item.kind === 'checkpoint') return [item.position];
        return item.kind === 'events' ? item.events.map(positionOf) : [];
      });
      expect(items.some((item) => item.kind === 'checkpoint')).toBe(true);
      expect(positions.toSorted(comparePositions)).toEqual(positions);
    });

    test('resumes after an interruption from the last item that it yielded', async () => {
      const prefix = newPrefix();
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(10));
      const following = reader({ streamPrefixes: [prefix] });
      await following.until((one) => one.has('caught-up'));
      for (let round = 1; round <= INTERRUPTIONS; round++) {
        await under.interrupt();
        await eventually(() => append(`${prefix}a`, streamRevision(round * 10 - 1), numberedEvents(10, round * 10)));
        await following.until(({ events }) => events.at(-1)?.revision === round * 10 + 9);
      }
      await following.stop();
      // At least once: events may be repeated, but none is skipped.
      const firstSight = [...new Set(revisionsOf(following.events))];
      expect(firstSight).toEqual(numbers((INTERRUPTIONS + 1) * 10));
    });

    test('a consumer may end a subscription after any item and subscribe again', async () => {
      const prefix = newPrefix();
      const from = (await under.feed.head()) ?? 'start';
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(30));
      const signal = new AbortController().signal;
      for (let round = 0; round < 10; round++) {
        for await (const item of under.feed.subscribe({
          from,
          streamPrefixes: [prefix],
          maxBatch: 3,
          signal,
        })) {
          if (item.kind === 'events') break;
        }
      }
      expect((await reader({ streamPrefixes: [prefix] }).untilCaughtUp()).events).toHaveLength(30);
    });

    test('the head is the position of the newest event', async () => {
      const position = await append(`${newPrefix()}a`, NO_EVENTS, numberedEvents(2));
      expect(await under.feed.head()).toEqual(position);
    });
  });
}

function positionOf({ position }: StoredEvent): GlobalPosition {
  if (!position) throw new Error('an event of a feed has a position');
  return position;
}
