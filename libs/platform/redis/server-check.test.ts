import { describe, expect, it } from 'vitest';

import { misfitOf } from './server-check.ts';

describe('a server at the address of REDIS_URL', () => {
  const fits = { mode: 'standalone', version: '7.0.15', hasFunctions: true, database: 0 };

  it('may be of any kind that has functions and says nothing else', () => {
    expect(misfitOf(fits, 'standalone')).toBe(null);
    expect(misfitOf({ ...fits, mode: 'cluster', version: '8.2.1' }, 'cluster')).toBe(null);
    expect(misfitOf({ mode: null, version: null, hasFunctions: true, database: null }, 'standalone')).toBe(null);
    expect(misfitOf({ mode: null, version: null, hasFunctions: true, database: null }, 'cluster')).toBe(null);
  });

  it.each([
    [{ ...fits, mode: 'sentinel' }, 'standalone', /is a Redis Sentinel/],
    [{ ...fits, mode: 'sentinel', hasFunctions: false }, 'cluster', /is a Redis Sentinel/],
    [
      { ...fits, version: '6.2.14', hasFunctions: false },
      'standalone',
      /is Redis 6\.2\.14, and Parley needs Redis 7\.0/,
    ],
    [{ ...fits, hasFunctions: false }, 'standalone', /has no functions/],
    [{ ...fits, mode: 'cluster' }, 'standalone', /a node of a Redis Cluster/],
    [fits, 'cluster', /a server that is in none/],
  ] as const)('is named if it is %j where %s is expected', (server, expected, reason) => {
    expect(misfitOf(server, expected)).toMatch(reason);
  });

  it('is named if it lacks the database of the address', () => {
    expect(misfitOf(fits, 'standalone', 99)).toMatch(/no database 99/);
    expect(misfitOf({ ...fits, database: 3 }, 'standalone', 3)).toBe(null);
  });
});
