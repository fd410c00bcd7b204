/* Read models are thrown away while gateways go on writing, and while the log cannot be read. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import type { Channels } from '#libs/features/channels/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { ProjectionState } from '#libs/platform/readmodel/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { composeFeatures, composeReadModels, PROJECTIONS, type ReadModels } from '#services/features.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { flush, keysIn, nodeWith } from '#test/support/redis-commands.ts';

/** So many that their keys do not come in one step of the removal. */
const CHANNELS = 600;

let test: TestPlatform;
let models: ReadModels;
let commands: Channels;
const ids: string[] = [];

beforeAll(async () => {
  test = await startTestPlatform();
  models = composeReadModels(test.platform);
  commands = composeFeatures(test.platform).channels;
  for (let n = 0; n < CHANNELS; n++) ids.push(newId());
  await forEachChannel((id) => commands.create(context(id), { id, ...PLAIN_CHANNEL, name: 'before' }));
});
afterAll(() => test.stop());

const organizationId = newId();
const context = (commandId = newId()): CommandContext => serviceCommand(organizationId, { commandId });

/** In groups: hundreds of appends at once may keep a busy store longer than it is waited for. */
async function forEachChannel(write: (id: string) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < CHANNELS; from += 100) await Promise.all(ids.slice(from, from + 100).map(write));
}

const foldAgain = (): Promise<number> =>
  rebuild({ feed: test.platform.feed, ...models }, { signal: AbortSignal.timeout(60_000) });

it('entities that are written between two steps of the removal are complete afterwards', async () => {
  const redis = connectRedis(test.redis.url);
  await waitForRedis(redis, 60_000);
  const scan = redis.scan.bind(redis);
  let steps = 0;
  redis.scan = async function* (match, step) {
    for await (const keys of scan(match, step)) {
      if (++steps === 2) await forEachChannel((id) => commands.update(context(), id, { name: 'between' }));
      yield keys;
    }
  };
  await rebuild(
    { feed: test.platform.feed, ...models, state: new ProjectionState(redis, PROJECTIONS) },
    { signal: AbortSignal.timeout(60_000) },
  );
  redis.close();
  expect(steps).toBeGreaterThan(1);

  const afterwards = await dumpReadModels(test.platform.redis);
  await flush(test.platform.redis);
  await foldAgain();
  expect(afterwards).toEqual(await dumpReadModels(test.platform.redis));
});

it('all other keys of an entity are deleted with its state and document', async () => {
  const { redis } = test.platform;
  await foldAgain();
  const revision = (await keysIn(redis, 'parley:rm:*')).find((key) => key.endsWith('}:revision'));
  expect(revision).toBeDefined();
  await nodeWith(redis, String(revision)).hset(String(revision).replace(/revision$/, 'of-a-later-version'), {
    field: 'value',
  });
  await models.state.clear();
  expect(await keysIn(redis, 'parley:rm:*')).toEqual([]);
  await foldAgain();
});
