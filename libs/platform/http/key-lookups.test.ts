import type { IncomingMessage } from 'node:http';

import { expect, it } from 'vitest';

import type { Principal } from './auth.ts';
import { authenticateUpgrade, KeyLookups } from './key-lookups.ts';

const principal: Principal = {
  organizationId: 'o',
  principalType: 'service',
  principalId: 's',
  keyId: 'k',
  scopes: new Set(['read']),
  isMember: false,
  expiresAtMs: null,
};

/** Keys that start with `good` work; `remembered` ones are answered without a look-up. Keys that worked are known. */
function authenticator() {
  const waiting = new Map<string, () => void>();
  const pending = new Map<string, Promise<Principal | null>>();
  const remembered = new Set<string>();
  const known = new Set<string>();
  const answerOf = (key: string): Principal | null => (key.startsWith('good') ? principal : null);
  return {
    remembered,
    /** Keys that are being looked up. */
    get running(): string[] {
      return [...waiting.keys()];
    },
    authenticate(key: string): Principal | null | Promise<Principal | null> {
      if (remembered.has(key)) return answerOf(key);
      const { promise, resolve } = Promise.withResolvers<Principal | null>();
      const shared = pending.get(key) ?? promise;
      pending.set(key, shared);
      if (shared === promise) {
        waiting.set(key, () => {
          if (answerOf(key) !== null) known.add(key);
          resolve(answerOf(key));
        });
      }
      return shared;
    },
    isKnown: (key: string) => known.has(key),
    /** Ends all look-ups, and those that follow them. */
    async settle(): Promise<void> {
      while (waiting.size > 0) {
        for (const end of waiting.values()) end();
        waiting.clear();
        pending.clear();
        await new Promise(setImmediate);
      }
    },
  };
}

const outcomeOf = async (identity: () => unknown): Promise<unknown> => {
  try {
    return await identity();
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error;
  }
};
const flood = (keys: KeyLookups, count: number, address: string): Promise<unknown>[] =>
  Array.from({ length: count }, (_, n) => outcomeOf(() => keys.authenticate(`bad ${n} of ${address}`, address)));

it('looks up a bounded number of unknown keys at once', async () => {
  const inner = authenticator();
  const outcomes = flood(new KeyLookups(inner, { limitAddresses: true }), 300, 'a');
  expect(inner.running).toHaveLength(16);
  await inner.settle();
  expect(new Set(await Promise.all(outcomes))).toEqual(new Set([null]));
});

it('answers a remembered key at once, and looks up one that has worked here before, whatever else waits', async () => {
  const inner = authenticator();
  const keys = new KeyLookups(inner, { limitAddresses: true });
  const first = keys.authenticate('good', 'a');
  await inner.settle();
  expect(await first).toBe(principal);
  inner.remembered.add('good');
  const outcomes = flood(keys, 100, 'a');
  expect(keys.authenticate('good', 'a')).toBe(principal);
  inner.remembered.delete('good');
  const again = keys.authenticate('good', 'a');
  expect(inner.running).toContain('good');
  await inner.settle();
  expect(await again).toBe(principal);
  await Promise.all(outcomes);
});

it('lets a new key of another address have the next turn but one', async () => {
  const inner = authenticator();
  const keys = new KeyLookups(inner, { limitAddresses: true });
  const outcomes = flood(keys, 400, 'a');
  const other = outcomeOf(() => keys.authenticate('good', 'b'));
  const round = inner.running;
  await inner.settle();
  expect(round).toHaveLength(16);
  expect(await other).toBe(principal);
  await Promise.all(outcomes);
});

it('refuses an address more unknown keys once too many have failed or wait, and no other', async () => {
  const inner = authenticator();
  const keys = new KeyLookups(inner, { limitAddresses: true });
  const overflowing = flood(keys, 600, 'a');
  const refused = (await Promise.all(overflowing.slice(528))) as string[];
  expect(new Set(refused)).toEqual(new Set(['rate_limited']));
  await inner.settle();
  expect(new Set(await Promise.all(overflowing.slice(0, 528)))).toEqual(new Set([null]));
  const more = flood(keys, 100, 'a again');
  await inner.settle();
  await Promise.all(more);

  const last = Array.from({ length: 100 }, (_, n) => outcomeOf(() => keys.authenticate(`bad ${n}`, 'a')));
  await inner.settle();
  const outcomes = await Promise.all(last);
  const failed = outcomes.filter((one) => one === null).length;
  // 600 a minute, and those that ran while the last of them failed.
  expect(failed).toBeGreaterThanOrEqual(72);
  expect(failed).toBeLessThan(72 + 16);
  expect(outcomes.filter((one) => one === 'rate_limited')).toHaveLength(100 - failed);
  expect(await outcomeOf(() => keys.authenticate('good too', 'a'))).toBe('rate_limited');
  const other = keys.authenticate('good', 'b');
  await inner.settle();
  expect(await other).toBe(principal);
});

it('shares one look-up among requests with the same key', async () => {
  const inner = authenticator();
  const keys = new KeyLookups(inner, { limitAddresses: true });
  const outcomes = Array.from({ length: 2_000 }, () => outcomeOf(() => keys.authenticate('good', 'a')));
  expect(inner.running).toEqual(['good']);
  await inner.settle();
  expect(new Set(await Promise.all(outcomes))).toEqual(new Set([principal]));
});

it('counts no failures if many callers share an address', async () => {
  const inner = authenticator();
  const keys = new KeyLookups(inner, { limitAddresses: false });
  // More than an address may fail in a minute; few at once, as none may wait for a second.
  for (let round = 0; round < 40; round++) {
    const outcomes = flood(keys, 20, `${round}`).concat(flood(keys, 20, 'a'));
    await inner.settle();
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set([null]));
  }
});

it('counts the tokens of upgrades with the other unknown keys of their address', async () => {
  const inner = authenticator();
  const keys = new KeyLookups(inner, { limitAddresses: true });
  const upgrade = async (token: string, address: string) => {
    const request = {} as IncomingMessage;
    keys.serveUpgrade(request, address);
    return outcomeOf(() => authenticateUpgrade(request, token));
  };
  for (let round = 0; round < 6; round += 1) {
    const outcomes = Array.from({ length: 100 }, (_, n) => upgrade(`bad ${round} ${n}`, 'a'));
    await inner.settle();
    expect(new Set(await Promise.all(outcomes))).toEqual(new Set([null]));
  }
  expect(await upgrade('good', 'a')).toBe('rate_limited');
  expect(await outcomeOf(() => keys.authenticate('bad', 'a'))).toBe('rate_limited');
  const other = upgrade('good', 'b');
  await inner.settle();
  expect(await other).toBe(principal);
});
