import { afterAll, beforeAll, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { ReadModelPositions } from '#libs/platform/readmodel/index.ts';
import { composeFeatures, composeReadModels } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { startTestPlatform } from '#test/support/platform.ts';
import type { TestPlatform } from '#test/support/platform.ts';
import { flush } from '#test/support/redis-commands.ts';

let test: TestPlatform;
let positions: ReadModelPositions;
let store: CountingStore;

const organizationId = newId();
const id = newId();
const at = (revision: number) => ({ organizationId, stream: `channel-${id}`, revision });

beforeAll(async () => {
  test = await startTestPlatform();
  store = new CountingStore(test.platform.store);
  const { projector } = composeReadModels({ ...test.platform, store });
  positions = new ReadModelPositions(test.platform.readModel, projector);
  await composeFeatures(test.platform).channels.create(serviceCommand(organizationId, { commandId: id }), {
    id,
    ...PLAIN_CHANNEL,
    name: 'here',
  });
});
afterAll(() => test.stop());

it('what read models hold is visible without a look at the log', async () => {
  store.reads = 0;
  expect(await positions.waitUntilVisible(at(0), 1_000)).toBe(true);
  expect(store.reads).toBe(0);
});

it('what nobody has applied is brought from the log', async () => {
  await flush(test.platform.redis);
  expect(await positions.waitUntilVisible(at(0), 5_000)).toBe(true);
});

it('what the log does not have either is waited for without a storm of reads', async () => {
  store.reads = 0;
  expect(await positions.waitUntilVisible(at(7), 1_000)).toBe(false);
  expect(store.reads).toBeGreaterThan(0);
  expect(store.reads).toBeLessThanOrEqual(10);
});
