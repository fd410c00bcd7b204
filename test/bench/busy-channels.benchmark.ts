/** Memory of a realtime node that receives events of thousands of channels, against the limit that it promises. */
import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import { measuredTogether, type Benchmark } from './benchmark.ts';
import { askOnce } from './child-process.ts';

export interface BusyChannelsTask {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  readonly channels: number;
  /** Events of each channel. */
  readonly events: number;
}

/** MiB: the growth of the heap and its buffers by the events, after collection; the limit; all that was received. */
export type BusyChannelsAnswer = Readonly<Record<'node' | 'budget' | 'received', { readonly memory: number }>>;

/** Some three times as much as the node may keep. */
const EVENTS = 40;

export const busyChannelsBenchmark: Benchmark = {
  name: 'busy-channels',
  rows: [
    {
      title: 'memory of the frames of 10,000 busy channels: growth of heap and buffers, and its budget',
      ours: 'node',
      theirs: 'budget',
      figure: 'memory',
      unit: 'MiB',
      goal: { atMost: 1 },
    },
    {
      title: 'the same, and the frames that were received',
      ours: 'node',
      theirs: 'received',
      figure: 'memory',
      unit: 'MiB',
    },
  ],
  async prepare() {
    const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
    const task = { eventstoreUrl: eventStore.url, redisUrl: redis.url, channels: 10_000, events: EVENTS };
    const side = measuredTogether(() =>
      askOnce<BusyChannelsAnswer>('sides/parley-busy-channels.process.ts', task, { execArgv: ['--expose-gc'] }),
    );
    return {
      sides: { node: side('node'), budget: side('budget'), received: side('received') },
      async cleanUp() {
        await Promise.all([eventStore.stop(), redis.stop()]);
      },
    };
  },
};
