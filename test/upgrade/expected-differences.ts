/** What this version is meant to answer otherwise than versions before a commit. */
import { spawnSync } from 'node:child_process';

export interface ExpectedDifference {
  /** Part of the line of a group of differences, or of all differences in it. */
  readonly part: string;
  /** The commit that made the difference: a former version that has it must answer the same. */
  readonly since: string;
  readonly reason: string;
}

const POLLED_LISTS = {
  since: '93dc542a',
  reason: 'polled lists end before the oldest incomplete interaction (decision 124)',
};

const EXPECTED: readonly ExpectedDifference[] = [
  {
    part: 'The API key or token lacks the scope',
    since: 'a67541b2',
    reason: 'tokens of members have scopes, too (decision 135)',
  },
  {
    part: '/api/v1/crawls/{id}/events [].line.data.status',
    since: 'c5e52968',
    reason: 'pages without a document do not count (decision 157)',
  },
  {
    part: '/api/v1/knowledge/{id}/search?query nodes[].sources[]',
    since: '96c67cad',
    reason: 'words have other stems and weights, so sources have another order (decision 141)',
  },
  { part: '/interactions?order ', ...POLLED_LISTS },
  { part: '/interactions?after_sequence ', ...POLLED_LISTS },
  { part: '/interactions?created_after ', ...POLLED_LISTS },
];

/** @param checkout of the former version, a work tree of Git */
export function expectedDifferences(checkout: string): ExpectedDifference[] {
  return EXPECTED.filter(({ since }) => {
    const { status } = spawnSync('git', ['merge-base', '--is-ancestor', since, 'HEAD'], { cwd: checkout });
    if (status !== 0 && status !== 1) throw new Error(`${checkout} is no work tree of Git with the commit ${since}`);
    return status === 1;
  });
}
