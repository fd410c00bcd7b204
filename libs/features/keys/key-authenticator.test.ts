import { beforeEach, describe, expect, it } from 'vitest';

import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';

import { KeyAuthenticator } from './key-authenticator.ts';
import { newKey } from './key-form.ts';
import { KeyDirectory } from './key-directory.ts';
import type { KnownKey } from './key-directory.ts';

const { secret, id, digest } = newKey();
const principal = {
  organizationId: 'org',
  principalType: 'user',
  principalId: 'ada',
  keyId: id,
  scopes: new Set<string>(),
  expiresAtMs: null,
} as const;

/** What the log says, and whether it can be read. */
let log: { works: boolean; away: boolean; reads: number };
/** Whether announcements arrive. */
let received: boolean;
let clockMs: number;
let authenticator: KeyAuthenticator;

beforeEach(() => {
  log = { works: true, away: false, reads: 0 };
  received = true;
  clockMs = 0;
  authenticator = new KeyAuthenticator({
    directory: { byId: () => read() },
    changes: { areReceivedSince: () => received },
    clock: () => clockMs,
  });
});

async function read(): Promise<KnownKey | null> {
  log.reads += 1;
  const { works, away } = log;
  await Promise.resolve();
  if (away) throw storeUnavailable('event store');
  return works ? { digest, principal } : null;
}

const authenticate = async (): Promise<boolean> => (await authenticator.authenticate(secret)) !== null;

describe('a key that was read before', () => {
  it('is answered at once while announcements arrive', async () => {
    expect(await authenticate()).toBe(true);
    clockMs = 10_000;
    expect(authenticator.authenticate(secret)).toBe(principal);
    expect(authenticator.principal(id)).toBe(principal);
    expect(log.reads).toBe(1);
  });

  it('is read again within a second where announcements do not arrive', async () => {
    expect(await authenticate()).toBe(true);
    received = false;
    clockMs = 700;
    expect(await authenticate()).toBe(true);
    log.works = false;
    clockMs = 1_000;
    expect(await authenticate()).toBe(false);
    expect(log.reads).toBe(2);
  });

  it('is read again behind a use after a while, in case the announcement was lost', async () => {
    expect(await authenticate()).toBe(true);
    log.works = false;
    clockMs = 16_000;
    expect(authenticator.authenticate(secret)).toBe(principal);
    expect(log.reads).toBe(2);
    await expect.poll(authenticate).toBe(false);
  });

  it('is read again after a gap in the announcements', async () => {
    expect(await authenticate()).toBe(true);
    log.works = false;
    authenticator.onGap();
    expect(await authenticate()).toBe(false);
  });

  it('is accepted for half a minute while the log is away, then it cannot be decided', async () => {
    expect(await authenticate()).toBe(true);
    log.away = true;
    clockMs = 34_000;
    expect(await authenticate()).toBe(true);
    clockMs = 36_000;
    await expect(authenticate()).rejects.toMatchObject({ code: 'store_unavailable' });
    log.away = false;
    expect(await authenticate()).toBe(true);
  });
});

describe('a revocation', () => {
  it('outlasts every later answer of a store that lags', async () => {
    expect(await authenticate()).toBe(true);
    authenticator.onChange({ kind: 'revoked', keyId: id });
    expect(await authenticate()).toBe(false);
    authenticator.onGap();
    expect(await authenticate()).toBe(false);
    expect(authenticator.principal(id)).toBeNull();
  });

  it.each([
    { kind: 'revoked', keyId: id },
    { kind: 'user-deactivated', organizationId: 'org', userId: 'ada' },
  ] as const)('that is announced during a read ($kind) makes it void', async (change) => {
    const reading = authenticate();
    log.works = false;
    authenticator.onChange(change);
    expect(await reading).toBe(false);
    expect(await authenticate()).toBe(false);
  });
});

describe('what is verified', () => {
  it('says how old the read is that it rests on', async () => {
    expect(await authenticator.verify(id)).toEqual({ principal, ageMs: 0 });
    clockMs = 10_000;
    expect(await authenticator.verify(id)).toEqual({ principal, ageMs: 10_000 });
    received = false;
    expect(await authenticator.verify(id)).toEqual({ principal, ageMs: 0 });
    log.away = true;
    clockMs = 20_000;
    await expect(authenticator.verify(id)).rejects.toMatchObject({ code: 'store_unavailable' });
    log = { works: false, away: false, reads: 0 };
    expect(await authenticator.verify(id)).toBeNull();
  });
});

describe('a key is known', () => {
  it('after it was read by its secret or, for a ticket, by its id', async () => {
    expect(authenticator.isKnown(secret)).toBe(false);
    await authenticator.principal(id);
    expect(authenticator.isKnown(secret)).toBe(true);
    expect(authenticator.isKnown(newKey().secret)).toBe(false);
  });

  it('although it changes, which makes it be read again, and until it is revoked', async () => {
    await authenticate();
    authenticator.onChange({ kind: 'changed', keyId: id });
    expect(authenticator.isKnown(secret)).toBe(true);
    expect(await authenticate()).toBe(true);
    expect(log.reads).toBe(2);
    authenticator.onChange({ kind: 'revoked', keyId: id });
    expect(authenticator.isKnown(secret)).toBe(false);
  });
});

it('a key that was unknown is read again once it is announced', async () => {
  log.works = false;
  expect(await authenticate()).toBe(false);
  log.works = true;
  expect(await authenticate()).toBe(false);
  authenticator.onChange({ kind: 'changed', keyId: id });
  expect(await authenticate()).toBe(true);
});

it('says that a key cannot be read when others have waited for a silent log for long', async () => {
  const silence = Promise.withResolvers<never>();
  let reads = 0;
  const store: Pick<EventStore, 'readStream'> = {
    readStream() {
      reads += 1;
      return { [Symbol.asyncIterator]: () => ({ next: () => silence.promise }) };
    },
  };
  const directory = new KeyDirectory({ store: store as EventStore });
  const waiting = Array.from({ length: 32 }, (_, n) => directory.byId(`key-${n}`));
  await expect(directory.byId('one-more')).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(reads).toBe(32);
  silence.reject(new Error('the end of the test'));
  await Promise.allSettled(waiting);
});
