/** Search in a knowledge graph: how good its answers are, and how fast, beside other engines on the same nodes. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { pythonWith } from '#test/support/foreign-packages.ts';

import type { Benchmark, Row, Sample } from './benchmark.ts';
import { askOnce } from './child-process.ts';
import { type CollectionName, hasCranfield, type ManualName, MANUALS } from './search/collections.ts';
import { unpackPackages } from './sides/debian-package.ts';

const ENGINES = ['parley', 'minisearch', 'fts5', 'bm25s', 'parley with wordllama'] as const;
export type SearchEngine = (typeof ENGINES)[number];

export interface SearchTask {
  readonly engine: SearchEngine;
  readonly collection: CollectionName;
  /** Path of a Python that has the package of the engine; empty without one. */
  readonly python: string;
  /** Whether to ask the questions for the relevance of the answers. */
  readonly isJudged: boolean;
  /** Sizes to measure the duration of queries at, in nodes. */
  readonly sizes: readonly number[];
}

/** Figures by name. */
export type SearchAnswer = Readonly<Record<string, number>>;

/** Packages from PyPI that engines are, or use. */
const PYTHON_PACKAGES: {
  readonly [engine in SearchEngine]?: readonly [name: string, version: string, ...others: string[]];
} = {
  bm25s: ['bm25s', '0.3.16', 'PyStemmer'],
  'parley with wordllama': ['wordllama', '0.4.0.post1'],
};
const SIZES = [1_000, 10_000, 100_000];
/** Beyond, its questions take too long for a run. */
const MAX_MINISEARCH = 10_000;
/** The durations of queries are measured with this one. */
const TIMED: ManualName = 'PostgreSQL manual';
const CRANFIELD = 'Cranfield';
const GOALS = {
  [`${TIMED}, recall at 10`]: 0.85,
  [`${TIMED}, reciprocal rank`]: 0.6,
  'Python library, in the first 3': 26,
  [`${CRANFIELD}, nDCG`]: 0.363,
  'p50 at 100000': 50,
  'p99 at 100000': 50,
};

const against = (theirs: 'goal' | SearchEngine, figure: string, unit: string, goal?: Row['goal']): Row => ({
  title: `search: ${figure}`,
  ours: 'parley',
  theirs,
  figure,
  unit,
  ...(goal && { goal }),
});
const durations = SIZES.flatMap((size) => (size > MAX_MINISEARCH ? [] : [`p50 at ${size}`, `p99 at ${size}`]));
const judged: readonly (readonly [figure: string, unit: string])[] = [
  [`${TIMED}, reciprocal rank`, 'of 1'],
  [`${TIMED}, in the first 3`, 'of 100'],
  ['Python library, in the first 3', 'of 30'],
  [`${CRANFIELD}, nDCG`, 'of 1'],
];

export const searchBenchmark: Benchmark = {
  name: 'search',
  rows: [
    ...Object.keys(GOALS).map((figure) => {
      const isDuration = figure.startsWith('p');
      const unit = isDuration ? 'ms' : figure.endsWith('first 3') ? 'of 30' : 'of 1';
      return against('goal', figure, unit, isDuration ? { atMost: 1 } : { atLeast: 1 });
    }),
    ...ENGINES.slice(1).flatMap((engine) => judged.map(([figure, unit]) => against(engine, figure, unit))),
    ...durations.map((figure) => against('minisearch', figure, 'ms')),
    ...SIZES.map((size) => against('fts5', `p50 at ${size}`, 'ms')),
  ],
  async prepare({ amount, data }) {
    const sizes = SIZES.filter((size) => amount === 1 || size < 100_000);
    const { collections, missing, cleanUp } = await prepareCollections(data);
    // The same in every run, and slow to ask of MiniSearch.
    const known = new Map<SearchEngine, SearchAnswer>();
    const side = (engine: SearchEngine) => async (): Promise<Sample> => {
      const [name, version = '', ...others] = PYTHON_PACKAGES[engine] ?? [];
      const python =
        name === undefined ? '' : await pythonWith(name, version, 'python3', console.log, others).catch(String);
      if (name !== undefined && !existsSync(python)) return { figures: {}, remarks: [`skipped: ${python}`] };
      const figures: Record<string, number> = { ...known.get(engine) };
      for (const [title, collection] of collections) {
        const isTimed = title === TIMED && name === undefined;
        const asked = isTimed ? sizes.filter((size) => engine !== 'minisearch' || size <= MAX_MINISEARCH) : [];
        const isJudged = !known.has(engine);
        if (!isJudged && asked.length === 0) continue;
        const task: SearchTask = { engine, collection, python, isJudged, sizes: asked };
        const answer = await askOnce<SearchAnswer>('sides/search.process.ts', task);
        for (const [figure, value] of Object.entries(answer))
          figures[figure.includes(' at 1') && figure.startsWith('p') ? figure : `${title}, ${figure}`] = value;
      }
      known.set(engine, figures);
      const remarks = sizes.length < SIZES.length ? ['100,000 nodes: in full runs only'] : [];
      return { figures, remarks: [...missing, ...remarks] };
    };
    return {
      sides: {
        parley: side('parley'),
        minisearch: side('minisearch'),
        fts5: side('fts5'),
        bm25s: side('bm25s'),
        'parley with wordllama': side('parley with wordllama'),
        goal: async () => ({ figures: GOALS }),
      },
      cleanUp,
    };
  },
};

/** Uses manuals that are installed, and unpacks the packages of the others. */
async function prepareCollections(data: string | null) {
  const collections = new Map<string, CollectionName>();
  const missing: string[] = [];
  const unpacked: { remove(): Promise<void> }[] = [];
  for (const [manual, { folder, package: name }] of Object.entries(MANUALS) as [
    ManualName,
    (typeof MANUALS)[ManualName],
  ][]) {
    let root = '/';
    if (!existsSync(folder)) {
      const found = await unpackPackages([name]);
      if ('missing' in found) {
        missing.push(found.missing);
        continue;
      }
      unpacked.push(found);
      root = found.folder;
    }
    if (existsSync(join(root, folder))) collections.set(manual, { manual, root });
    else missing.push(`the package ${name} has no ${folder}`);
  }
  if (data !== null && hasCranfield(data)) collections.set(CRANFIELD, { cranfield: data });
  else missing.push('Cranfield: with --data and the folder of the collection');
  return {
    collections,
    missing,
    async cleanUp() {
      for (const one of unpacked) await one.remove();
    },
  };
}
