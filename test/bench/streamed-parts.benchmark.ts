/** Whether a part of a streamed answer costs more the longer the answer is: interactions completed by 10 and by 1,000 parts. */
import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import { measuredTogether, type Benchmark, type Row } from './benchmark.ts';
import { askOnce } from './child-process.ts';

export interface StreamedPartsTask {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  /** Parts of an answer. */
  readonly lengths: readonly number[];
  readonly seconds: number;
}

/** By the parts of an answer, in microseconds of a part: processor time of Parley and of Redis, and elapsed time. */
export type StreamedPartsAnswer = Readonly<
  Record<string, { readonly cpu: number; readonly redis: number; readonly time: number }>
>;

const LENGTHS = [10, 1_000];

const row = (figure: string, what: string, goal?: Row['goal']): Row => ({
  title: `one part of a streamed answer: ${what}, of 1,000 parts and of 10`,
  ours: '1000',
  theirs: '10',
  figure,
  unit: 'us',
  ...(goal && { goal }),
});

export const streamedPartsBenchmark: Benchmark = {
  name: 'streamed-parts',
  rows: [row('cpu', 'processor time', { atMost: 1.5 }), row('redis', 'that of Redis'), row('time', 'elapsed time')],
  async prepare() {
    const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
    const task = { eventstoreUrl: eventStore.url, redisUrl: redis.url, lengths: LENGTHS };
    const side = measuredTogether(({ seconds }) =>
      askOnce<StreamedPartsAnswer>('sides/parley-streamed-parts.process.ts', { ...task, seconds }),
    );
    return {
      sides: Object.fromEntries(LENGTHS.map((length) => [length, side(String(length))])),
      async cleanUp() {
        await Promise.all([eventStore.stop(), redis.stop()]);
      },
    };
  },
};
