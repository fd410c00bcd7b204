/** Whether the number of participants affects the speed of posts: channels with 1, 100 and 1,000 of them. */
import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import { measuredTogether, type Benchmark, type Row } from './benchmark.ts';
import { askOnce } from './child-process.ts';

export interface ParticipantsTask {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  /** Participants of each channel that is posted to. */
  readonly counts: readonly number[];
  readonly seconds: number;
}

/** By number of participants, the median duration of a post, in microseconds. */
export type ParticipantsAnswer = Readonly<Record<string, { readonly post: number }>>;

const COUNTS = [1, 100, 1_000];

const row = (count: number): Row => ({
  title: `post: in a channel with ${count.toLocaleString('en')} participants, and with 1`,
  ours: String(count),
  theirs: '1',
  figure: 'post',
  unit: 'us',
  goal: { atMost: 1.25 },
});

export const participantsBenchmark: Benchmark = {
  name: 'post-participants',
  rows: COUNTS.slice(1).map(row),
  async prepare() {
    const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
    const task = { eventstoreUrl: eventStore.url, redisUrl: redis.url, counts: COUNTS };
    const side = measuredTogether(({ seconds }) =>
      askOnce<ParticipantsAnswer>('sides/parley-participants.process.ts', { ...task, seconds }),
    );
    return {
      sides: Object.fromEntries(COUNTS.map((count) => [count, side(String(count))])),
      async cleanUp() {
        await Promise.all([eventStore.stop(), redis.stop()]);
      },
    };
  },
};
