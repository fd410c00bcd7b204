/*
 * One append holds at most 1 MiB: larger batches are split into several appends, and larger commands are refused
 * before the append.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';

import type { Channels } from '#libs/features/channels/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { composeFeatures } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

let test: TestPlatform;
let commands: Channels;

beforeAll(async () => {
  test = await startTestPlatform();
  commands = composeFeatures(test.platform).channels;
});
afterAll(() => test.stop());

const organizationId = newId();
const context = (): CommandContext => serviceCommand(organizationId);

it('commands that wait together are split by bytes, which are three for each of these characters', async () => {
  const create = context();
  await commands.create(create, { id: create.commandId, ...PLAIN_CHANNEL });
  const results = await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      commands.update(context(), create.commandId, { metaData: { n, text: '鵬'.repeat(20_000) } }),
    ),
  );
  expect(results.filter(({ ok }) => ok)).toHaveLength(40);
});

it('a channel whose participants have too many details is refused at creation, too', async () => {
  const create = context();
  const participants = Array.from({ length: 600 }, () => ({
    type: 'authenticated_user' as const,
    participantId: newId(),
    userId: newId(),
    displayName: '鵬'.repeat(256),
    imageUrl: `https://example.com/${'x'.repeat(1_000)}`,
    isOwner: true,
  }));
  expect(await commands.create(create, { id: create.commandId, ...PLAIN_CHANNEL, participants })).toEqual({
    ok: false,
    rejection: { reason: 'too_many_participants' },
  });
});

it('the memory of an entity is counted with what its commands add to it', async () => {
  const metrics = createMetrics({ processMetrics: false });
  const { channels } = composeFeatures({ ...test.platform, metrics });
  const create = context();
  const kept = async (): Promise<number> =>
    Number(/^parley_entity_cache_bytes (\d+)/m.exec(await metrics.scrape())?.[1]);
  await channels.create(create, { id: create.commandId, ...PLAIN_CHANNEL });
  const before = await kept();
  await channels.update(context(), create.commandId, { name: 'x'.repeat(250) });
  const grown = (await kept()) - before;
  expect(grown).toBeGreaterThan(250);
  expect(grown).toBeLessThan(2_000);
  await channels.update(context(), create.commandId, { metaData: { text: 'x'.repeat(100_000) } });
  expect(await kept()).toBeGreaterThan(100_000);
  await channels.update(context(), create.commandId, { metaData: {} });
  // An event that is smaller than the entity: it is not measured again.
  expect(await kept()).toBeGreaterThan(100_000);
});
