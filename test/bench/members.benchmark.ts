/** The cost of a member's token beside an API key: the same requests in turn, in one process with all its stores. */
import { measuredTogether, type Benchmark, type Row } from './benchmark.ts';
import { askOnce } from './child-process.ts';

export interface MembersTask {
  readonly seconds: number;
  /** Channels of the list. */
  readonly channels: number;
}

const REQUESTS = ['get', 'post', 'list'] as const;
export type MembersSide = `${'token' | 'key'}-${(typeof REQUESTS)[number]}`;

/** Processor time of a request, in milliseconds. */
export type MembersAnswer = Readonly<Record<MembersSide, { readonly cpu: number }>>;

const row = (request: (typeof REQUESTS)[number], title: string): Row => ({
  title: `${title} with a member's token, and with a key of the organization: processor time`,
  ours: `token-${request}`,
  theirs: `key-${request}`,
  figure: 'cpu',
  unit: 'ms',
  ...(request !== 'list' && { goal: { atMost: 1.1 } }),
});

export const membersBenchmark: Benchmark = {
  name: 'members',
  rows: [
    row('get', 'GET one interaction'),
    row('post', 'POST of an interaction'),
    row('list', 'GET the newest 50 of 1,000 channels'),
  ],
  prepare: async ({ amount }) => {
    const side = measuredTogether(({ seconds }) =>
      askOnce<MembersAnswer>('sides/parley-members.process.ts', { seconds, channels: Math.ceil(1_000 * amount) }),
    );
    const names = REQUESTS.flatMap((name) => [`token-${name}`, `key-${name}`] as const);
    return { sides: Object.fromEntries(names.map((name) => [name, side(name)])), cleanUp: async () => undefined };
  },
};
