/* What applies an entity writes it to its lists first. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { type EntityWrite, ReadModel } from '#libs/platform/readmodel/read-model.ts';
import { listKeys } from '#libs/platform/readmodel/read-model.keys.ts';
import { connectRedis, type RedisClient, textsOf, waitForRedis } from '#libs/platform/redis/index.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let server: TestRedis;
let redis: RedisClient;
let readModel: ReadModel;
let id: string;
let lists: readonly ReturnType<typeof listKeys>[];

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.url);
  await waitForRedis(redis, 60_000);
  readModel = new ReadModel(redis);
});
afterAll(async () => {
  redis.close();
  await server.stop();
});

beforeEach(() => {
  id = newId();
  lists = [newId(), newId()].map((owner) => listKeys({ category: 'note', version: 1 }, owner));
});

const keyOf = (name: string): string => `parley:rm:note:v1:{${id}}:${name}`;

/** Applies the event; each list gets one of the facets as its own, and `all`. */
function apply(event: number, facets: readonly string[], more: Partial<EntityWrite> = {}) {
  const revision = streamRevision(event);
  const entries = lists.map((list, nth) => ({ list, member: id, revision, facets: ['all', facets[nth] ?? 'none'] }));
  const operations = [{ command: 'SET', key: keyOf('document'), args: [`at ${event}`] }] as const;
  const write = { revisionKey: keyOf('revision'), first: revision, last: revision, operations, lists: entries };
  return readModel.apply([{ ...write, ...more }]);
}

const members = (nth: number, facet: string): Promise<string[]> => {
  const key = `${lists[nth]?.indexPrefix}${facet}`;
  return redis.send(key, (node) => node.zrange(key, '0', '-1'));
};
const stored = async (): Promise<(string | null)[]> =>
  textsOf(await redis.values([keyOf('revision'), keyOf('document')]));

it('an entity is in the indexes of each of its lists as of its newest event', async () => {
  const publication = { topic: keyOf('topic'), message: 'changed', alsoOfDuplicates: false };
  await apply(0, ['open', 'mine'], { publication });
  await apply(1, ['closed', 'mine'], { publication });
  // An old event that comes late.
  expect(await apply(0, ['open', 'yours'])).toEqual([{ kind: 'duplicate', stored: 1 }]);
  expect([await members(0, 'open'), await members(0, 'closed'), await members(0, 'all')]).toEqual([[], [id], [id]]);
  expect([await members(1, 'yours'), await members(1, 'mine'), await members(1, 'all')]).toEqual([[], [id], [id]]);
  expect(await stored()).toEqual(['1', 'at 1']);
});

it('an entity is not applied if Redis refuses an entry of a list', async () => {
  const key = lists[1]?.members ?? '';
  await redis.send(key, (node) => node.set(key, 'no hash'));
  await expect(apply(0, ['open', 'mine'])).rejects.toThrow('WRONGTYPE');
  expect(await stored()).toEqual([null, null]);
  await redis.remove([key]);
  await apply(0, ['open', 'mine']);
  expect([await members(0, 'open'), await members(1, 'mine'), await stored()]).toEqual([[id], [id], ['0', 'at 0']]);
});
