import { beforeEach, describe, expect, it } from 'vitest';

import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import type { ChangeListener } from '#libs/platform/announcements/index.ts';

import { KeyAuthenticator, KeyDirectory, type KnownKey } from './key-authenticator.ts';
import { newKey } from './key-form.ts';

const { secret, id, digest } = newKey();
const principal = {
  organizationId: 'org',
  principalType: 'user',
  principalId: 'ada',
  keyId: id,
  scopes: new Set<string>(),
  isMember: false,
  expiresAtMs: null,
} as const;

/** Whether the log contains a working key, and can be read. */
let log: { works: boolean; isUnavailable: boolean; reads: number };
/** Whether announcements arrive. */
let received: boolean;
let clockMs: number;
let authenticator: KeyAuthenticator;
/** Passes announcements to the authenticator. */
let announced: ChangeListener;

beforeEach(() => {
  log = { works: true, isUnavailable: false, reads: 0 };
  received = true;
  clockMs = 0;
  authenticator = new KeyAuthenticator({
    directory: { byId: () => read() },
    announcements: {
      areReceivedSince: () => received,
      listen(listener) {
        announced = listener;
        return () => undefined;
      },
    },
    clock: () => clockMs,
  });
});

async function read(): Promise<KnownKey | null> {
  log.reads += 1;
  const { works, isUnavailable } = log;
  await Promise.resolve();
  if (isUnavailable) throw storeUnavailable('the event store');
  return works ? { digest, principal } : null;
}

const authenticate = async (): Promise<boolean> => (await authenticator.authenticate(secret)) !== null;

describe('a key that was read before', () => {
  it('is answered from memory while announcements arrive', async () => {
    expect(await authenticate()).toBe(true);
    clockMs = 10_000;
    expect(authenticator.authenticate(secret)).toBe(principal);
    expect(authenticator.principal(id)).toBe(principal);
    expect(log.reads).toBe(1);
  });

  it('is read again within a second if announcements do not arrive', async () => {
    expect(await authenticate()).toBe(true);
    received = false;
    clockMs = 700;
    expect(await authenticate()).toBe(true);
    log.works = false;
    clockMs = 1_000;
    expect(await authenticate()).toBe(false);
    expect(log.reads).toBe(2);
  });

  it('is read again in the background after 15 s, in case the announcement was lost', async () => {
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
    announced.onGap();
    expect(await authenticate()).toBe(false);
  });

  it('is accepted for 35 s while the log is unavailable, then fails with store_unavailable', async () => {
    expect(await authenticate()).toBe(true);
    log.isUnavailable = true;
    clockMs = 34_000;
    expect(await authenticate()).toBe(true);
    clockMs = 36_000;
    await expect(authenticate()).rejects.toMatchObject({ code: 'store_unavailable' });
    log.isUnavailable = false;
    expect(await authenticate()).toBe(true);
  });
});

it('a verified digest does not let another one with the same id pass', async () => {
  expect(await authenticate()).toBe(true);
  const other = digest.slice(0, 32) + digest.slice(0, 32);
  expect(authenticator.authenticate(secret, other)).toBeNull();
  expect(authenticator.authenticate(secret, digest)).toBe(principal);
});

describe('a revocation', () => {
  it('is not undone by a later read of a store that lags', async () => {
    expect(await authenticate()).toBe(true);
    announced.onChange({ kind: 'revoked', keyId: id });
    expect(await authenticate()).toBe(false);
    announced.onGap();
    expect(await authenticate()).toBe(false);
    expect(authenticator.principal(id)).toBeNull();
  });

  it.each([
    { kind: 'revoked', keyId: id },
    { kind: 'user-deactivated', organizationId: 'org', userId: 'ada' },
  ] as const)('that is announced during a read ($kind) invalidates the read', async (change) => {
    const reading = authenticate();
    log.works = false;
    announced.onChange(change);
    expect(await reading).toBe(false);
    expect(await authenticate()).toBe(false);
  });
});

describe('a verified key', () => {
  it('has the age of the read behind it', async () => {
    expect(await authenticator.verify(id)).toEqual({ principal, ageMs: 0 });
    clockMs = 10_000;
    expect(await authenticator.verify(id)).toEqual({ principal, ageMs: 10_000 });
    received = false;
    expect(await authenticator.verify(id)).toEqual({ principal, ageMs: 0 });
    log.isUnavailable = true;
    clockMs = 20_000;
    await expect(authenticator.verify(id)).rejects.toMatchObject({ code: 'store_unavailable' });
    log = { works: false, isUnavailable: false, reads: 0 };
    expect(await authenticator.verify(id)).toBeNull();
  });
});

describe('a key is known', () => {
  it('once it was read by its secret or, for a ticket, by its id', async () => {
    expect(authenticator.isKnown(secret)).toBe(false);
    await authenticator.principal(id);
    expect(authenticator.isKnown(secret)).toBe(true);
    expect(authenticator.isKnown(newKey().secret)).toBe(false);
  });

  it('while a change makes it be read again, until it is revoked', async () => {
    await authenticate();
    announced.onChange({ kind: 'changed', keyId: id });
    expect(authenticator.isKnown(secret)).toBe(true);
    expect(await authenticate()).toBe(true);
    expect(log.reads).toBe(2);
    announced.onChange({ kind: 'revoked', keyId: id });
    expect(authenticator.isKnown(secret)).toBe(false);
  });
});

it('an unknown key is read again once a change of it is announced', async () => {
  log.works = false;
  expect(await authenticate()).toBe(false);
  log.works = true;
  expect(await authenticate()).toBe(false);
  announced.onChange({ kind: 'changed', keyId: id });
  expect(await authenticate()).toBe(true);
});

it('fails with store_unavailable when all permits wait for a log that does not answer', async () => {
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
