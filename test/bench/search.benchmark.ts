/** Search in a knowledge graph: how good its answers are, and how fast, beside MiniSearch on the same nodes. */
import { existsSync } from 'node:fs';

import type { Benchmark, Row, Sample } from './benchmark.ts';
import { askOnce } from './child-process.ts';
import questions from './search/questions.json' with { type: 'json' };

export type SearchEngine = 'parley' | 'minisearch';

export interface SearchTask {
  readonly engine: SearchEngine;
  /** Whether to ask the questions for the relevance of the answers. */
  readonly isJudged: boolean;
  /** Sizes to measure the duration of queries at, in nodes. */
  readonly sizes: readonly number[];
}

/** Figures by name. */
export type SearchAnswer = Readonly<Record<string, number>>;

const SIZES = [1_000, 10_000, 100_000];
/** Beyond, its questions take too long for a run. */
const MAX_MINISEARCH = 10_000;
const GOALS = { 'recall at 10': 0.85, 'reciprocal rank': 0.6, 'p50 at 100000': 50, 'p99 at 100000': 50 };

const against = (theirs: 'goal' | 'minisearch', figure: string, unit: string, goal?: Row['goal']): Row => ({
  title: `search: ${figure}`,
  ours: 'parley',
  theirs,
  figure,
  unit,
  ...(goal && { goal }),
});
const durations = SIZES.flatMap((size) => (size > MAX_MINISEARCH ? [] : [`p50 at ${size}`, `p99 at ${size}`]));

export const searchBenchmark: Benchmark = {
  name: 'search',
  rows: [
    against('goal', 'recall at 10', 'of 1', { atLeast: 1 }),
    against('goal', 'reciprocal rank', 'of 1', { atLeast: 1 }),
    against('goal', 'p50 at 100000', 'ms'),
    against('goal', 'p99 at 100000', 'ms', { atMost: 1 }),
    against('minisearch', 'recall at 10', 'of 1'),
    against('minisearch', 'reciprocal rank', 'of 1'),
    ...durations.map((figure) => against('minisearch', figure, 'ms')),
  ],
  async prepare({ amount }) {
    const isInstalled = existsSync(questions.folder);
    const sizes = SIZES.filter((size) => amount === 1 || size < 100_000);
    // The same in every run, and slow to ask of MiniSearch.
    const relevance = new Map<SearchEngine, SearchAnswer>();
    const side = (engine: SearchEngine) => async (): Promise<Sample> => {
      if (!isInstalled) return { figures: {}, remarks: [`skipped: install the package ${questions.package}`] };
      const known = relevance.get(engine);
      const asked = sizes.filter((size) => engine === 'parley' || size <= MAX_MINISEARCH);
      const task = { engine, sizes: asked, isJudged: known === undefined };
      const figures = { ...known, ...(await askOnce<SearchAnswer>('sides/search.process.ts', task)) };
      relevance.set(engine, figures);
      const remarks = sizes.length < SIZES.length ? ['100,000 nodes: in full runs only'] : [];
      return { figures, remarks };
    };
    return {
      sides: { parley: side('parley'), minisearch: side('minisearch'), goal: async () => ({ figures: GOALS }) },
      cleanUp: async () => undefined,
    };
  },
};
