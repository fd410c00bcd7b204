import { afterAll, beforeAll, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import { ReadModelPositions } from '#libs/platform/readmodel/index.ts';
import { composeFeatures, composeReadModels } from '#services/features.ts';
import { startTestPlatform } from '#test/support/platform.ts';
import type { TestPlatform } from '#test/support/platform.ts';

let test: TestPlatform;
let positions: ReadModelPositions;
let reads = 0;

const organizationId = newId();
const id = newId();
const at = (revision: number) => ({ organizationId, stream: `channel-${id}`, revision });

beforeAll(async () => {
  test = await startTestPlatform();
  const { store, readModel } = test.platform;
  const counting: EventStore = {
    append: (...args) => store.append(...args),
    readStream(...args) {
      reads++;
      return store.readStream(...args);
    },
    ping: () => store.ping(),
    close: () => store.close(),
  };
  const { projector } = composeReadModels({ ...test.platform, store: counting });
  positions = new ReadModelPositions(readModel, projector);
  await composeFeatures(test.platform).channels.commands.create(
    { commandId: id, organizationId, actor: { type: 'service', id: 'test' }, at: new Date().toISOString() },
    {
      id,
      type: 'websocket',
      channelType: 'chat',
      name: 'here',
      participants: [],
      metaData: null,
      source: null,
      agentInvocationBehavior: null,
      parentChannelId: null,
      originMessageId: null,
    },
  );
});
afterAll(() => test.stop());

it('what read models hold is visible without a look at the log', async () => {
  reads = 0;
  expect(await positions.waitUntilVisible(at(0), 1_000)).toBe(true);
  expect(reads).toBe(0);
});

it('what nobody has applied is brought from the log', async () => {
  await test.platform.redis.flushall();
  expect(await positions.waitUntilVisible(at(0), 5_000)).toBe(true);
});

it('what the log does not have either is waited for without a storm of reads', async () => {
  reads = 0;
  expect(await positions.waitUntilVisible(at(7), 1_000)).toBe(false);
  expect(reads).toBeGreaterThan(0);
  expect(reads).toBeLessThanOrEqual(10);
});
