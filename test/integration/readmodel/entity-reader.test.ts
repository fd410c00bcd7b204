/* Reads tell entities that the read models lack from entities that do not exist, whatever happens between two reads. */
import { CHANNEL_PROJECTION_KEYS } from '#test/support/projection-keys.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { CHANNEL_READ_MODEL, type Channels } from '#libs/features/channels/index.ts';
import { NO_EVENTS, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { CollectionReader, entityKeys, ReadModel } from '#libs/platform/readmodel/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { composeFeatures, composeReadModels, type ReadModels } from '#services/features.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { nodeWith } from '#test/support/redis-commands.ts';
import { composeUnapplied } from '#test/support/unapplied-writer.ts';

let test: TestPlatform;
let models: ReadModels;
let queries: Channels;
let projector: ReadModels['projector'];
let redis: ReturnType<typeof connectRedis>;
/** What others do right before the reader's next command of that kind reaches Redis. */
let meanwhile: { readonly before: (words: readonly unknown[]) => boolean; work(): Promise<void> } | undefined;

const organizationId = newId();
const id = newId();

beforeAll(async () => {
  test = await startTestPlatform();
  models = composeReadModels(test.platform);
  const commands = composeFeatures(test.platform).channels;
  await commands.create(serviceCommand(organizationId, { commandId: id }), { id, ...PLAIN_CHANNEL, name: 'here' });
  redis = connectRedis(test.redis.url);
  await waitForRedis(redis, 60_000);
  for (const node of redis.nodes()) {
    const sendCommand = node.sendCommand.bind(node);
    node.sendCommand = (command, stream) => {
      const now = meanwhile;
      if (now?.before([command.name, ...command.args]) !== true) return sendCommand(command, stream);
      meanwhile = undefined;
      void now.work().then(() => sendCommand(command, stream));
      return command.promise;
    };
  }
  const reading = composeFeatures({ ...test.platform, redis, readModel: new ReadModel(redis) });
  ({ channels: queries, projector } = reading);
});
afterAll(async () => {
  redis.close();
  await test.stop();
});

const emptied = async (): Promise<void> => void (await models.state.clear());
const built = async (): Promise<void> => {
  await models.projector.catchUp('channel', organizationId, id);
  const start = await models.state.begin();
  await models.state.save(start, null, true);
};
const lookAtCompleteness = (words: readonly unknown[]): boolean => words.includes(CHANNEL_PROJECTION_KEYS.complete);

it('finds a channel that is built right after a read missed it', async () => {
  await emptied();
  meanwhile = { before: lookAtCompleteness, work: built };
  expect(await queries.channel(organizationId, id)).not.toBeNull();

  await emptied();
  meanwhile = { before: lookAtCompleteness, work: built };
  expect(await queries.participants(organizationId, id)).toEqual([]);
  expect(meanwhile).toBeUndefined();
});

it('a channel that does not exist is missing, whether the read models are complete or not', async () => {
  for (const prepare of [emptied, built]) {
    await prepare();
    expect(await queries.channel(organizationId, newId())).toBeNull();
    expect(await queries.participants(organizationId, newId())).toBeNull();
  }
});

it('a list that is emptied while it is read is not taken for an empty one', async () => {
  await built();
  const page = { size: 10, offset: 0, after: null };
  expect((await queries.list(organizationId, { archived: false }, page)).total).toBe(1);
  meanwhile = { before: ([name]) => String(name).startsWith('z'), work: emptied };
  await expect(queries.list(organizationId, { archived: false }, page)).rejects.toMatchObject({
    code: 'not_caught_up',
  });
});

it('an unapplied channel beyond those that a process remembers is found, and lists wait for the projector', async () => {
  await built();
  const { unapplied } = projector;
  const remember = (owner: string, channel: string, revision: StreamRevision): void =>
    unapplied.add(entityKeys(CHANNEL_READ_MODEL, owner, channel).revision, {
      category: 'channel',
      organizationId: owner,
      id: channel,
      revision,
    });
  const [owner, forgotten, remembered] = [newId(), newId(), newId()];
  const commands = composeUnapplied(test.platform).channels;
  for (const channel of [forgotten, remembered]) {
    await commands.create(serviceCommand(owner, { commandId: channel }), { id: channel, ...PLAIN_CHANNEL });
    remember(owner, channel, streamRevision(0));
  }
  // The read models lack nothing of these: they only displace the first channel.
  for (let count = 1; count < 10_000; count++) remember(newId(), newId(), NO_EVENTS);

  const list = () => queries.list(owner, { archived: false }, { size: 10, offset: 0, after: null });
  await expect(list()).rejects.toMatchObject({ code: 'not_caught_up' });
  expect(await queries.channel(owner, forgotten)).not.toBeNull();
  await expect(list()).rejects.toMatchObject({ code: 'not_caught_up' });

  await projector.catchUp('channel', owner, remembered);
  expect((await list()).total).toBe(2);
  expect(unapplied.has(entityKeys(CHANNEL_READ_MODEL, owner, newId()).revision)).toBe(false);
});

it('members of sorted sets are found by their scores, however many there are', async () => {
  const set = 'members of scores';
  const collections = new CollectionReader(redis);
  const all = [1, 2, 4, 900].flatMap((score) =>
    Array.from({ length: 200 }, (_, n) => ({ score, name: `${score} ${n}` })),
  );
  const node = nodeWith(redis, set);
  for (const { score, name } of all) await node.zadd(set, score, name);
  // First with their scores; then, because they are many, score by score; and then again with their scores.
  for (const scores of [
    [1, 2, 3, 900],
    [1, 2, 3, 900],
    [2, 3, 4],
    [3, 5, 6],
    [3, 5, 6],
    [3, 4],
  ]) {
    const found = await collections.withScores(set, scores);
    const wanted = scores.filter((score) => all.some((one) => one.score === score));
    expect([...found.keys()].sort((a, b) => a - b)).toEqual(wanted);
    for (const [score, members] of found) {
      expect(members.toSorted()).toEqual(
        all
          .filter((one) => one.score === score)
          .map(({ name }) => name)
          .toSorted(),
      );
    }
  }
});
