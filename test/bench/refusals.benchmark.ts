/** Whether time tells a caller what there is: 404 for what belongs to others, and 404 for what does not exist, in turn. */
import { measuredTogether, type Benchmark, type Row } from './benchmark.ts';
import { askOnce } from './child-process.ts';

export interface RefusalsTask {
  /** Requests of each side. */
  readonly requests: number;
}

/** By a member about a channel of its organization in which it takes no part; by a key of another organization. */
export const REFUSALS = {
  'member-get': 'GET one interaction by a member',
  'member-post': 'POST of an interaction by a member',
  'member-ticket': 'POST for a ticket by a member',
  'member-search': 'search of a channel by a member',
  'key-get': 'GET one interaction by a key of another organization',
  'key-post': 'POST of an interaction by a key of another organization',
  'key-ticket': 'POST for a ticket by a key of another organization',
  'key-search': 'search of a channel by a key of another organization',
} as const;
export type Refusal = keyof typeof REFUSALS;
export type RefusalsSide = `${'others' | 'nothing'} ${Refusal}`;

/** Of the time from request to answer, in microseconds. */
export type RefusalsAnswer = Readonly<Record<RefusalsSide, { readonly median: number }>>;

const names = Object.keys(REFUSALS) as Refusal[];

export const refusalsBenchmark: Benchmark = {
  name: 'refusals',
  rows: names.map((name): Row => {
    return {
      title: `${REFUSALS[name]}: 404 for what others have, and for what does not exist: median`,
      ours: `others ${name}`,
      theirs: `nothing ${name}`,
      figure: 'median',
      unit: 'µs',
    };
  }),
  prepare: async ({ amount }) => {
    const side = measuredTogether(() =>
      askOnce<RefusalsAnswer>('sides/parley-refusals.process.ts', { requests: Math.ceil(2_000 * amount) }),
    );
    const sides = names.flatMap((name) => [`others ${name}`, `nothing ${name}`] as const);
    return { sides: Object.fromEntries(sides.map((name) => [name, side(name)])), cleanUp: async () => undefined };
  },
};
