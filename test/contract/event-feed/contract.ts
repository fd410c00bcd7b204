/**
 * Contract of every adapter of `LogFeed`. An adapter's test file calls `describeEventFeed` with the
 * way to set up its feed; the log behind it may hold events of other tests.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import type { GlobalPosition, StreamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { comparePositions, encodePosition } from '#libs/platform/eventstore/index.ts';
import type {
  LogFeed,
  EventStore,
  EventToAppend,
  FeedItem,
  FeedOptions,
  LogStart,
  StoredEvent,
} from '#libs/platform/eventstore/index.ts';
import { eventually } from '#test/support/eventually.ts';
import { logEvent, numberedEvents } from '#test/support/log-events.ts';

export interface FeedUnderTest {
  readonly feed: LogFeed;
  /** Writes to the log that the feed reads. */
  readonly store: EventStore;
  /** Cuts the feed off from where it reads, and lets it back. */
  interrupt(): Promise<void>;
  stop(): Promise<void>;
}

const DELIVERY_MS = 15_000;
/** How often the feed is cut off in one test. */
const INTERRUPTIONS = 3;

export function describeEventFeed(adapter: string, setUp: () => Promise<FeedUnderTest>): void {
  describe(`event feed: ${adapter}`, { timeout: DELIVERY_MS * 6 }, () => {
    let under: FeedUnderTest;
    beforeAll(async () => {
      under = await setUp();
    });
    afterAll(() => under.stop());

    /** Appends one after another, so that the streams' events lie in the log in this order. */
    const append = async (stream: string, from: StreamRevision, events: readonly EventToAppend[]) => {
      const appended = await under.store.append(stream, from, events);
      if (appended.kind !== 'appended' || !appended.position) throw new Error(`not appended to ${stream}`);
      return appended.position;
    };
    const reader = (options: Partial<FeedOptions<LogStart>>) => new Reader(under.feed, options);

    test('delivers the history of the streams asked for, every field of it, and nothing else', async () => {
      const [prefix, other] = [newPrefix(), newPrefix()];
      const events = [logEvent({ text: 'grüße', list: [1, null] }), logEvent({ n: 2 }, 'Other.v2')];
      await append(`${prefix}a`, NO_EVENTS, events);
      await append(`${other}x`, NO_EVENTS, numberedEvents(3));
      await append(`${prefix}b`, NO_EVENTS, numberedEvents(1));
      const { events: delivered } = await reader({ streamPrefixes: [prefix] }).untilCaughtUp();
      expect(byStream(delivered).map(withoutServersOwn)).toEqual([
        { stream: `${prefix}a`, revision: 0, ...events[0] },
        { stream: `${prefix}a`, revision: 1, ...events[1] },
        { stream: `${prefix}b`, revision: 0, ...numberedEvent(0, byStream(delivered)[2]) },
      ]);
      for (const event of delivered) expect(Math.abs(event.createdMs - Date.now())).toBeLessThan(60_000);
    });

    test('delivers several prefixes, and a prefix is not a pattern', async () => {
      const [one, two] = [newPrefix(), newPrefix()];
      for (const stream of [`${one}a`, `${two}b`, `x${one}c`, `${one.replace('-', '.')}d`]) {
        await append(stream, NO_EVENTS, numberedEvents(1));
      }
      const { events } = await reader({ streamPrefixes: [one, two] }).untilCaughtUp();
      expect(byStream(events).map(({ stream }) => stream)).toEqual([`${one}a`, `${two}b`].toSorted());
    });

    test('delivers all streams except those of the system when all are requested', async () => {
      const position = await append(`${newPrefix()}a`, NO_EVENTS, numberedEvents(1));
      const streams = [`${newPrefix()}a`, `${newPrefix()}b`];
      for (const stream of streams) await append(stream, NO_EVENTS, numberedEvents(2));
      const { events } = await reader({ streamPrefixes: 'all', from: position }).untilCaughtUp();
      expect(byStream(events).map(({ stream }) => stream)).toEqual(
        streams.toSorted().flatMap((stream) => [stream, stream]),
      );
    });

    test('delivers new events after the history, in the order of each stream and without gaps', async () => {
      const prefix = newPrefix();
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(10));
      const following = reader({ streamPrefixes: [prefix] });
      await following.untilCaughtUp({ keepRunning: true });
      for (let n = 10; n < 60; n += 5) await append(`${prefix}a`, streamRevision(n - 1), numberedEvents(5, n));
      await append(`${prefix}b`, NO_EVENTS, numberedEvents(3));
      await following.until((seen) => seen.length >= 63);
      expect(revisionsOf(following.events, `${prefix}a`)).toEqual(numbers(60));
      expect(revisionsOf(following.events, `${prefix}b`)).toEqual(numbers(3));
      await following.stop();
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
        expect(revisionsOf(resumed.events, `${prefix}a`)).toEqual(numbers(20).slice(resumeAfter + 1));
      }
    });

    test('no item holds more events than asked for, whatever the size', async () => {
      const prefix = newPrefix();
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(700));
      for (const maxBatch of [1, 7, 500]) {
        const { items } = await reader({ streamPrefixes: [prefix], maxBatch }).untilCaughtUp();
        const sizes = items.flatMap((item) => (item.kind === 'events' ? [item.events.length] : []));
        expect(Math.max(...sizes)).toBeLessThanOrEqual(maxBatch);
        expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(700);
      }
    });

    test('reports that it has caught up when the history is delivered, and not before', async () => {
      const prefix = newPrefix();
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(900));
      const { items } = await reader({ streamPrefixes: [prefix], maxBatch: 10 }).untilCaughtUp();
      const history = items.slice(
        0,
        items.findIndex(({ kind }) => kind === 'caught-up'),
      );
      expect(history.flatMap((item) => (item.kind === 'events' ? item.events : []))).toHaveLength(900);
    });

    test('reports checkpoints where no event matches', async () => {
      const [prefix, other] = [newPrefix(), newPrefix()];
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(1));
      const last = await append(`${other}x`, NO_EVENTS, numberedEvents(2000));
      const following = reader({ streamPrefixes: [prefix] });
      await following.until((_, items) => {
        const checkpoint = items.findLast((item) => item.kind === 'checkpoint');
        return checkpoint !== undefined && comparePositions(checkpoint.position, last) >= 0;
      });
      await following.stop();
      expect(following.events).toHaveLength(1);
    });

    test('a checkpoint never lies before an event that was delivered, nor after one that was not', async () => {
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

    test('a slow consumer gets everything, and no more than it asks for', async () => {
      const prefix = newPrefix();
      let revision = -1;
      for (let batch = 0; batch < 10; batch++) {
        await append(`${prefix}a`, streamRevision(revision), numberedEvents(500, revision + 1));
        revision += 500;
      }
      const following = reader({ streamPrefixes: [prefix], maxBatch: 50 });
      following.hold();
      await following.until((seen) => seen.length > 0);
      expect(following.events.length).toBeLessThanOrEqual(50);
      following.release();
      await following.until((seen) => seen.length >= 5000);
      expect(revisionsOf(following.events, `${prefix}a`)).toEqual(numbers(5000));
      await following.stop();
    });

    test('resumes after an interruption from the last item that it yielded', async () => {
      const prefix = newPrefix();
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(10));
      const following = reader({ streamPrefixes: [prefix] });
      await following.untilCaughtUp({ keepRunning: true });
      for (let round = 1; round <= INTERRUPTIONS; round++) {
        await under.interrupt();
        await eventually(() => append(`${prefix}a`, streamRevision(round * 10 - 1), numberedEvents(10, round * 10)));
        await following.until((seen) => seen.at(-1)?.revision === round * 10 + 9);
      }
      await following.stop();
      // At least once, but never out of order: a repetition may only go back, not skip.
      const firstSight = [...new Set(revisionsOf(following.events, `${prefix}a`))];
      expect(firstSight).toEqual(numbers((INTERRUPTIONS + 1) * 10));
    });

    test('ends at once when it is aborted: before it starts, while it waits, and between two items', async () => {
      const prefix = newPrefix();
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(50));
      const never = under.feed.subscribe({ from: 'start', streamPrefixes: [prefix], signal: AbortSignal.abort() });
      for await (const item of never) expect.unreachable(`yielded ${item.kind}`);

      const waiting = reader({ streamPrefixes: [prefix] });
      await waiting.untilCaughtUp({ keepRunning: true });
      await waiting.stop();

      const between = reader({ streamPrefixes: [prefix], maxBatch: 1 });
      between.hold();
      await between.until((seen) => seen.length > 0);
      const ended = between.stop();
      between.release();
      await ended;
      expect(between.events.length).toBeLessThan(50);
    });

    test('a consumer may leave in the middle and come back as another', async () => {
      const prefix = newPrefix();
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(30));
      const signal = new AbortController().signal;
      for (let round = 0; round < 10; round++) {
        for await (const item of under.feed.subscribe({
          from: 'start',
          streamPrefixes: [prefix],
          maxBatch: 3,
          signal,
        })) {
          if (item.kind === 'events') break;
        }
      }
      expect((await reader({ streamPrefixes: [prefix] }).untilCaughtUp()).events).toHaveLength(30);
    });

    test('two subscriptions do not take events from each other', async () => {
      const prefix = newPrefix();
      await append(`${prefix}a`, NO_EVENTS, numberedEvents(100));
      const both = [reader({ streamPrefixes: [prefix] }), reader({ streamPrefixes: [prefix], maxBatch: 3 })];
      const results = await Promise.all(both.map((one) => one.untilCaughtUp()));
      for (const { events } of results) expect(revisionsOf(events, `${prefix}a`)).toEqual(numbers(100));
    });

    test('the head is the position of the newest event', async () => {
      const position = await append(`${newPrefix()}a`, NO_EVENTS, numberedEvents(2));
      expect(await under.feed.head()).toEqual(position);
    });

    test('a feed of everything, of system streams or of empty batches cannot be asked for', async () => {
      for (const wrong of [
        { streamPrefixes: [] },
        { streamPrefixes: [''] },
        { streamPrefixes: ['$ce-'] },
        { maxBatch: 0 },
      ]) {
        await expect(reader({ streamPrefixes: ['a-'], ...wrong }).untilCaughtUp()).rejects.toThrow(Error);
      }
    });
  });
}

/** Consumes a feed in the background and keeps what it got. */
class Reader {
  readonly items: FeedItem[] = [];
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;
  #failure: { readonly error: unknown } | undefined;
  #gate: Promise<void> | undefined;
  #open: (() => void) | undefined;

  constructor(feed: LogFeed, options: Partial<FeedOptions<LogStart>>) {
    const { signal } = this.#abort;
    this.#done = this.#consume(feed.subscribe({ from: 'start', streamPrefixes: [], signal, ...options }));
  }

  get events(): StoredEvent[] {
    return this.items.flatMap((item) => (item.kind === 'events' ? item.events : []));
  }

  /** After the next events, nothing more is asked for. */
  hold(): void {
    this.#gate = new Promise((resolve) => (this.#open = resolve));
  }

  release(): void {
    this.#gate = undefined;
    this.#open?.();
  }

  async until(condition: (events: readonly StoredEvent[], items: readonly FeedItem[]) => boolean): Promise<void> {
    await eventually(
      () => {
        if (this.#failure) return true;
        return condition(this.events, this.items);
      },
      { timeoutMs: DELIVERY_MS },
    );
    if (this.#failure) throw this.#failure.error;
  }

  async untilCaughtUp({ keepRunning = false } = {}): Promise<this> {
    await this.until((_, items) => items.some(({ kind }) => kind === 'caught-up'));
    if (!keepRunning) await this.stop();
    return this;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #consume(feed: AsyncIterable<FeedItem>): Promise<void> {
    try {
      for await (const item of feed) {
        this.items.push(item);
        if (item.kind === 'events') await this.#gate;
      }
    } catch (error) {
      this.#failure = { error };
    }
  }
}

/** Between streams there is no order to rely on. */
const byStream = (events: readonly StoredEvent[]) =>
  events.toSorted((a, b) => (a.stream < b.stream ? -1 : a.stream > b.stream ? 1 : 0));

const newPrefix = () => `feed${newId().replaceAll('-', '')}-`;
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

function revisionsOf(events: readonly StoredEvent[], stream: string): number[] {
  return events.filter((event) => event.stream === stream).map(({ revision }) => revision);
}

function positionOf({ position }: StoredEvent): GlobalPosition {
  if (!position) throw new Error('an event of a feed has a position');
  return position;
}

function withoutServersOwn({ stream, revision, id, type, data, metadata }: StoredEvent) {
  return { stream, revision, id, type, data, metadata };
}

/** The event as it was appended, for its id and metadata are new each time. */
function numberedEvent(n: number, delivered: StoredEvent | undefined) {
  return { id: delivered?.id, type: 'Tested.v1', data: { n }, metadata: delivered?.metadata };
}
