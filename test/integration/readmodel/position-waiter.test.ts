import { afterAll, beforeAll, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import type { EntityReader } from '#libs/platform/readmodel/index.ts';
import { composeFeatures, composeReadModels } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { flush } from '#test/support/redis-commands.ts';

let test: TestPlatform;
let reader: EntityReader;
let store: CountingStore;

const organizationId = newId();
const id = newId();
const at = (revision: number) => ({ organizationId, stream: `channel-${id}`, revision });

beforeAll(async () => {
  test = await startTestPlatform();
  store = new CountingStore(test.platform.store);
  ({ reader } = composeReadModels({ ...test.platform, store }));
  await composeFeatures(test.platform).channels.create(serviceCommand(organizationId, { commandId: id }), {
    id,
    ...PLAIN_CHANNEL,
    name: 'here',
  });
});
afterAll(() => test.stop());

it('finds a position that the read models hold without a read of the log', async () => {
  store.reads = 0;
  expect(await reader.waitUntilVisible(at(0), 1_000)).toBe(true);
  expect(store.reads).toBe(0);
});

it('applies events from the log that no other process has applied', async () => {
  await flush(test.platform.redis);
  expect(await reader.waitUntilVisible(at(0), 5_000)).toBe(true);
});

it('waits for a position beyond the log with few reads of it', async () => {
  store.reads = 0;
  expect(await reader.waitUntilVisible(at(7), 1_000)).toBe(false);
  expect(store.reads).toBeGreaterThan(0);
  expect(store.reads).toBeLessThanOrEqual(10);
});
