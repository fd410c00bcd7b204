/** The cost of reactions on a page: 50 interactions with as many as they may have, against their bytes and the bare page. */
import { startTestEventStore } from '#test/support/event-store.ts';
import { startTestRedis } from '#test/support/redis.ts';

import { measuredTogether, type Benchmark, type Row } from './benchmark.ts';
import { askOnce } from './child-process.ts';

export interface ListReactionsTask {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  /** Of each interaction. */
  readonly reactions: number;
  readonly seconds: number;
}

/** Processor time of a page, in milliseconds: with reactions, without, and of parsing the stored reactions alone. */
export type ListReactionsAnswer = Readonly<Record<'reactions' | 'none' | 'parse', { readonly cpu: number }>>;

const row = (theirs: string, title: string): Row => ({ title, ours: 'reactions', theirs, figure: 'cpu', unit: 'ms' });

export const listReactionsBenchmark: Benchmark = {
  name: 'list-reactions',
  rows: [
    row('parse', 'a page of 50 with 1,000 reactions each: processor time, and JSON.parse of the stored reactions'),
    row('none', 'the same, and the page without reactions'),
  ],
  async prepare() {
    const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
    const task = { eventstoreUrl: eventStore.url, redisUrl: redis.url, reactions: 1_000 };
    const side = measuredTogether(({ seconds }) =>
      askOnce<ListReactionsAnswer>('sides/parley-list-reactions.process.ts', { ...task, seconds }),
    );
    return {
      sides: { reactions: side('reactions'), none: side('none'), parse: side('parse') },
      async cleanUp() {
        await Promise.all([eventStore.stop(), redis.stop()]);
      },
    };
  },
};
