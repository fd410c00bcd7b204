/** Whether the age of a channel affects speed: the same operations in channels of 10, 10,000 and 1,000,000 events. */
import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import { measuredTogether, type Benchmark, type Row } from './benchmark.ts';
import { askOnce } from './child-process.ts';

interface Stores {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
}

export interface FillChannelsTask extends Stores {
  /** Events of each channel; the answer has the channels' ids in the same order. */
  readonly sizes: readonly number[];
}

export interface ChannelsOfSize {
  /** The first is read, the others are posted to, in turn; if it is the only one, both. */
  readonly channels: readonly string[];
  readonly events: number;
}

export type Size = 'small' | 'middle' | 'large';
export type Operation = keyof typeof OPERATIONS;

export interface GrowthTask extends Stores {
  readonly sizes: Readonly<Record<Size, ChannelsOfSize>>;
  /** Count of each operation. */
  readonly seconds: number;
}

/** Median duration of each operation, in microseconds. */
export type GrowthAnswer = Readonly<Record<Size, Readonly<Record<Operation, number>>>>;

export const OPERATIONS = {
  post: 'post',
  cold: 'post, by a process that does not know the channel yet',
  read: 'read one interaction',
  page: 'newest page',
  cursor: 'page in the middle, by cursor',
  number: 'page in the middle, by its number',
  asOf: 'read one interaction as of the middle',
  pageAsOf: 'newest page as of the middle',
} as const;

/** A page as long as the smallest channel without its first event. */
export const PAGE = 9;

const SMALL = 10;
/** Large enough that the measured posts do not grow a channel much. */
const SMALL_CHANNELS = 100;
const MIDDLE = 10_000;
const LARGE = 1_000_000;
/** For a quick look: filling a large channel takes most of the time. */
const LARGE_IF_QUICK = 50_000;

const NAMES: Readonly<Record<Size, string>> = { small: '10', middle: '10,000', large: '1,000,000' };

const row = (operation: Operation, ours: Size, theirs: Size): Row => ({
  title: `${OPERATIONS[operation]}: in a channel of ${NAMES[ours]} events, and of ${NAMES[theirs]}`,
  ours,
  theirs,
  figure: operation,
  unit: 'us',
  // Equal within the noise: trees and tables are a little deeper in larger channels.
  goal: { atMost: 1.25 },
});

export const growthBenchmark: Benchmark = {
  name: 'growth',
  rows: (Object.keys(OPERATIONS) as Operation[]).flatMap((operation) =>
    // A channel of 10 events has no complete block of the past, and no second page.
    operation === 'asOf' || operation === 'pageAsOf' || operation === 'number'
      ? [row(operation, 'large', 'middle')]
      : [row(operation, 'middle', 'small'), row(operation, 'large', 'small')],
  ),
  async prepare({ amount }) {
    const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
    const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
    const large = amount < 1 ? LARGE_IF_QUICK : LARGE;
    const sizes = [large, MIDDLE, ...Array.from({ length: SMALL_CHANNELS + 1 }, () => SMALL)];
    const channels = await askOnce<string[]>('sides/fill-channels.process.ts', { ...stores, sizes });
    const task = {
      ...stores,
      sizes: {
        small: { channels: channels.slice(2), events: SMALL },
        middle: { channels: channels.slice(1, 2), events: MIDDLE },
        large: { channels: channels.slice(0, 1), events: large },
      },
    };
    const side = measuredTogether(({ seconds }) =>
      askOnce<GrowthAnswer>('sides/parley-growth.process.ts', { ...task, seconds: seconds / 2 }),
    );
    return {
      sides: { small: side('small'), middle: side('middle'), large: side('large') },
      async cleanUp() {
        await Promise.all([eventStore.stop(), redis.stop()]);
      },
    };
  },
};
