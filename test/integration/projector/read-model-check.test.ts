/** Redis has lost or changed single keys of read models that are complete: the check finds it on the log, and repairs it. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { EntityCheck } from '#libs/platform/readmodel/index.ts';
import { composeFeatures, composeReadModels, PROJECTIONS, type ReadModels } from '#services/features.ts';
import { ProjectionLoop } from '#services/projector/projection-loop.ts';
import { ReadModelCheck } from '#services/projector/read-model-check.ts';
import { playChannels } from '#test/support/channel-history.ts';
import { commandHistories, playHistory } from '#test/support/command-history.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { nodeWith } from '#test/support/redis-commands.ts';

let test: TestPlatform;
let models: ReadModels;
let live: Record<string, unknown>;

beforeAll(async () => {
  test = await startTestPlatform();
  models = composeReadModels(test.platform);
  const features = composeFeatures(test.platform);
  await playChannels(features.channels, { seed: 7, commands: 200 });
  for (const history of fc.sample(commandHistories({ minSteps: 50 }), { seed: 7, numRuns: 3 })) {
    await playHistory([features, composeFeatures(test.platform)], history);
  }
  const abort = new AbortController();
  const loop = new ProjectionLoop({ feed: test.platform.feed, ...models, onProblem: () => undefined });
  const ended = loop.run(abort.signal);
  await eventually(() => loop.progress.phase === 'live');
  abort.abort();
  await ended;
  live = await dumpReadModels(test.platform.redis);
});
afterAll(() => test.stop());

/** One pass. */
async function pass(
  entityCheck: Pick<EntityCheck, 'run'> = new EntityCheck({ ...test.platform, ...models, projections: PROJECTIONS }),
): Promise<{ entities: number; repaired: number }> {
  const abort = new AbortController();
  const check = new ReadModelCheck({
    feed: test.platform.feed,
    check: entityCheck,
    categories: models.projector.readModels.map(({ category }) => category),
    isLive: () => true,
    onRepaired: () => undefined,
    onFailure(error) {
      throw error;
    },
    rest: 0,
  });
  const running = check.run(abort.signal);
  await eventually(() => check.progress.completed !== null);
  abort.abort();
  await running;
  const { entities, repaired } = check.progress;
  return { entities, repaired };
}

const keysOf = (pattern: RegExp): string[] => Object.keys(live).filter((key) => pattern.test(key));

it('finds nothing to repair where nothing is damaged', async () => {
  const { entities, repaired } = await pass();
  expect(entities).toBeGreaterThan(5);
  expect(repaired).toBe(0);
  expect(await dumpReadModels(test.platform.redis)).toEqual(live);
});

const damages: [what: string, keys: RegExp, harm: (key: string) => Promise<unknown>][] = [
  ['a document is lost', /channel.*:document$/, (key) => node(key).del(key)],
  ['a document is changed', /channel.*:document$/, (key) => node(key).setrange(key, 20, 'ZZZZ')],
  ['a revision is lost', /channel.*:revision$/, (key) => node(key).del(key)],
  ['a revision is set back', /channel.*:revision$/, (key) => node(key).set(key, '0')],
  [
    'a revision is changed to one that the log does not have',
    /channel.*:revision$/,
    (key) => node(key).set(key, '99999'),
  ],
  ['a state is changed', /channel.*:state:channel$/, (key) => node(key).set(key, 'null')],
  ['the facets of list entries are lost', /list:.*:members$/, (key) => node(key).del(key)],
  ['an index of a list is lost', /list:.*:by:/, (key) => node(key).del(key)],
  [
    'an interaction is lost',
    /\}:interactions$/,
    async (key) => node(key).hdel(key, (await node(key).hkeys(key))[0] ?? ''),
  ],
  ['an index of interactions lacks one', /channel.*:sequences:all$/, (key) => node(key).zpopmin(key)],
];

const node = (key: string) => nodeWith(test.platform.redis, key);

it.each(damages)('repairs read models of which %s', async (_what, pattern, harm) => {
  const keys = keysOf(pattern);
  expect(keys).not.toEqual([]);
  for (const key of keys.slice(0, 3)) await harm(key);
  expect(await dumpReadModels(test.platform.redis)).not.toEqual(live);
  expect((await pass()).repaired).toBeGreaterThan(0);
  expect(await dumpReadModels(test.platform.redis)).toEqual(live);
});

it('ends where the log ended when it began, however many entities are created meanwhile', async () => {
  const { channels } = composeFeatures(test.platform);
  const { entities } = await pass({ run: () => Promise.resolve('same') });
  const create = async (): Promise<'same'> => {
    const id = newId();
    await channels.create(serviceCommand(newId(), { commandId: id }), { id, ...PLAIN_CHANNEL, name: 'meanwhile' });
    return 'same';
  };
  expect((await pass({ run: create })).entities).toBe(entities);
  expect((await pass({ run: () => Promise.resolve('same') })).entities).toBe(2 * entities);
});

it('leaves a list entry that another process folds during a repair', async () => {
  const [document = ''] = keysOf(/channel.*:document$/);
  const [, organizationId = '', id = ''] = /\{([^:}]+):([^}]+)\}:document$/.exec(document) ?? [];
  const members = keysOf(/channel.*:members$/).find((key) => key.includes(`{${organizationId}}`)) ?? '';
  const entries = await node(members).hgetall(members);
  const member = Object.keys(entries).find((name) => name.endsWith(id)) ?? '';
  await node(members).hdel(members, member);

  const { redis } = test.platform;
  let others = 1;
  const raced = new Proxy(redis, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return async (...args: unknown[]): Promise<unknown> => {
        const result: unknown = await Reflect.apply(value, target, args);
        if (name === 'remove' && others-- > 0) await models.projector.catchUp('channel', organizationId, id);
        return result;
      };
    },
  });
  const check = new EntityCheck({ ...test.platform, ...models, redis: raced, projections: PROJECTIONS });
  expect(await check.run({ category: 'channel', organizationId, id }, () => Promise.resolve())).toBe('repaired');
  expect(await node(members).hgetall(members)).toEqual(entries);
});

it('rests between the pages of a long stream, whose comparison would take the process for itself', async () => {
  const [organizationId, id] = [newId(), newId()];
  const { channels } = composeFeatures(test.platform);
  await channels.create(serviceCommand(organizationId, { commandId: id }), { id, ...PLAIN_CHANNEL, name: 'long' });
  const interaction = {
    participant: { type: 'system' as const },
    content: [],
    contentRole: 'user_message' as const,
    complete: true,
    metadata: null,
    invocationConfig: null,
    turnId: null,
    parentSpanId: null,
    organizationApplication: null,
  };
  const posts = Array.from({ length: 450 }, () => {
    const post = { ...interaction, spanId: newId() };
    return channels.interactions.post(serviceCommand(organizationId), id, post, { spanIsNew: true });
  });
  expect((await Promise.all(posts)).every(({ ok }) => ok)).toBe(true);
  const check = new EntityCheck({ ...test.platform, ...models, projections: PROJECTIONS });
  let rests = 0;
  const outcome = await check.run({ category: 'channel', organizationId, id }, () =>
    Promise.resolve(void (rests += 1)),
  );
  expect(outcome).toBe('same');
  // 451 events.
  expect(rests).toBe(5);
});
