import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { KeyAuthenticator, KeyDirectory } from '#libs/features/keys/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import type { Principal } from '#libs/platform/http/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { bootstrapOn, type Bootstrapped, FIRST_ORGANIZATION } from '#services/first-organization.ts';
import { composeFeatures } from '#services/features.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

const OWN_KEY = 'my-own-key_0123456789-0123456789-0123456789';

let test: TestPlatform;
let dataDir: string;

beforeEach(async () => {
  test = await startTestPlatform();
  dataDir = await mkdtemp(join(tmpdir(), 'parley-test-bootstrap-'));
});
afterEach(async () => {
  await test.stop();
  await rm(dataDir, { recursive: true, force: true });
});

/** A start of Parley without state in memory, as in a new process. */
function start(bootstrapKey?: string, platform: Platform = test.platform): Promise<Bootstrapped> {
  return bootstrapOn({ platform, features: composeFeatures(platform) }, { bootstrapKey, dataDir });
}

async function authenticate(key: string): Promise<Principal | null> {
  const announcements = { areReceivedSince: () => false, listen: () => () => undefined };
  const parts = { directory: new KeyDirectory(test.platform), announcements };
  return new KeyAuthenticator(parts).authenticate(key);
}

/** Number of events per stream category in the log. */
async function eventCounts(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const stop = new AbortController();
  const streamPrefixes = ['organization-', 'user-', 'key-'];
  for await (const item of test.platform.feed.subscribe({ from: 'start', streamPrefixes, signal: stop.signal })) {
    if (item.kind === 'events') for (const { type } of item.events) counts[type] = (counts[type] ?? 0) + 1;
    if (item.kind === 'caught-up') break;
  }
  stop.abort();
  return counts;
}

const ONE_OF_EACH = { 'KeyIssued.v4': 1, 'UserCreated.v1': 1, 'OrganizationCreated.v1': 1 };

describe('the first start', () => {
  it('creates an organization, its owner and a key with all scopes, and shows the key until it was seen', async () => {
    const first = await start();
    expect(first.apiKey).toMatch(/^parley_live_/);
    expect((await stat(join(dataDir, 'first-key'))).mode & 0o777).toBe(0o600);
    expect(await authenticate(first.apiKey ?? '')).toMatchObject({
      organizationId: FIRST_ORGANIZATION,
      principalType: 'user',
      principalId: first.userId,
      scopes: new Set(['read', 'write', 'impersonate', 'agent', 'admin', 'platform']),
    });

    const again = await start();
    expect(again.apiKey).toBe(first.apiKey);
    await again.shown();
    expect((await start()).apiKey).toBeNull();
    expect(await readdir(dataDir)).toEqual([]);
    expect(await eventCounts()).toEqual(ONE_OF_EACH);
    expect(await authenticate(first.apiKey ?? '')).not.toBeNull();
  });

  it.each([
    ['with a random key', undefined],
    ['with a key of the operator', OWN_KEY],
  ])('can be cut short anywhere, %s: there is one organization and a key that works', async (_, bootstrapKey) => {
    // A process dies before each of the three appends, and after each.
    for (const when of ['before', 'after', 'before', 'after', 'before', 'after'] as const) {
      const dying = start(bootstrapKey, { ...test.platform, store: dyingStore(when) });
      await expect(dying).rejects.toThrow('killed');
    }
    expect(await eventCounts()).toEqual(ONE_OF_EACH);
    // The next start may lack the configured key.
    const { apiKey } = await start();
    expect(apiKey === null).toBe(bootstrapKey !== undefined);
    expect(await authenticate(apiKey ?? OWN_KEY)).toMatchObject({ organizationId: FIRST_ORGANIZATION });
    expect(await eventCounts()).toEqual(ONE_OF_EACH);
  });

  it('creates a random key if a start with a configured key died before installing it', async () => {
    const dying = start(OWN_KEY, { ...test.platform, store: dyingStore('before') });
    await expect(dying).rejects.toThrow('killed');
    const { apiKey } = await start();
    expect(await authenticate(apiKey ?? '')).not.toBeNull();
  });

  it('finds the key of the log on disk', async () => {
    const dying = start(undefined, { ...test.platform, store: dyingStore('after') });
    await expect(dying).rejects.toThrow('killed');
    const onDisk = (await readFile(join(dataDir, 'first-key'), 'utf8')).trim();
    expect(await authenticate(onDisk)).toBeNull();
    expect((await start()).apiKey).toBe(onDisk);
    expect(await authenticate(onDisk)).not.toBeNull();
  });

  /** The real store, for a process that dies at its first append: before it is sent, or before it is answered. */
  function dyingStore(when: 'before' | 'after'): EventStore {
    const { store } = test.platform;
    return {
      async append(...args) {
        if (when === 'after') await store.append(...args);
        throw new Error('killed');
      },
      readStream: (...args) => store.readStream(...args),
      ping: () => store.ping(),
      close: () => store.close(),
    };
  }
});

describe('a bootstrap key', () => {
  it('is installed once, at any start, instead of a random one', async () => {
    expect((await start(OWN_KEY)).apiKey).toBeNull();
    expect((await start(OWN_KEY)).apiKey).toBeNull();
    expect(await authenticate(OWN_KEY)).toMatchObject({ organizationId: FIRST_ORGANIZATION });
    expect(await eventCounts()).toEqual(ONE_OF_EACH);
  });

  it('is added to existing keys', async () => {
    const first = await start();
    await first.shown();
    await start(OWN_KEY);
    expect(await authenticate(first.apiKey ?? '')).not.toBeNull();
    expect(await authenticate(OWN_KEY)).not.toBeNull();
  });

  it('stays revoked', async () => {
    await start(OWN_KEY);
    const principal = await authenticate(OWN_KEY);
    const { keys } = composeFeatures(test.platform);
    const context = {
      commandId: newId(),
      organizationId: FIRST_ORGANIZATION,
      actor: { type: 'system' as const, id: 'test' },
      at: new Date().toISOString(),
    };
    await keys.revoke(context, principal?.keyId ?? '', 'operator');
    await start(OWN_KEY);
    expect(await authenticate(OWN_KEY)).toBeNull();
  });

  it('does not prevent a start if the owner was deactivated', async () => {
    const { userId } = await start(OWN_KEY);
    const { users } = composeFeatures(test.platform);
    const actor = { type: 'system' as const, id: 'test' };
    const at = new Date().toISOString();
    await users.deactivate({ commandId: newId(), organizationId: FIRST_ORGANIZATION, actor, at }, userId);
    await start(OWN_KEY);
    expect(await authenticate(OWN_KEY)).toBeNull();
  });

  it('in an invalid form is refused before any write', async () => {
    for (const key of ['short', `${'x'.repeat(40)} y`, `parley_live_${'0'.repeat(49)}`]) {
      await expect(start(key)).rejects.toThrow(/^PARLEY_BOOTSTRAP_KEY must have/);
    }
    expect(await eventCounts()).toEqual({});
    expect(await readdir(dataDir)).toEqual([]);
  });
});
