/* What an import costs the stores: a conversation that fits into an append is one, with the channel that it creates. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { type EntityId, newId } from '#libs/kernel/ids.ts';
import { type EntityWrite, ReadModel } from '#libs/platform/readmodel/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';
import { ImportTarget } from '#services/cli/import/import-target.ts';
import { openSource } from '#services/cli/import/open-source.ts';
import { NOTHING_YET, runImport } from '#services/cli/import/run-import.ts';
import { StoreRetry } from '#services/cli/import/store-retry.ts';
import { composeFeatures } from '#services/features.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

const ASSISTANT = join(import.meta.dirname, '../../../../docs/samples/assistant.jsonl');

/** Notes what is looked up and published. */
class WatchedReadModel extends ReadModel {
  lookups = 0;
  readonly published: string[] = [];

  override lookUp(...[key, lookups]: Parameters<ReadModel['lookUp']>): ReturnType<ReadModel['lookUp']> {
    this.lookups += lookups.length;
    return super.lookUp(key, lookups);
  }

  override apply(writes: readonly EntityWrite[]): ReturnType<ReadModel['apply']> {
    this.published.push(...writes.flatMap(({ publication }) => publication?.message ?? []));
    return super.apply(writes);
  }
}

let test: TestPlatform;
let store: CountingStore;
let readModel: WatchedReadModel;
let work: string;

beforeAll(async () => {
  test = await startTestPlatform();
  store = new CountingStore(test.platform.store);
  readModel = new WatchedReadModel(test.platform.redis);
  work = await mkdtemp(join(tmpdir(), 'parley-test-appends-'));
});
afterAll(async () => {
  await test.stop();
  await rm(work, { recursive: true, force: true });
});

/** @returns what was imported, and the appends that it took */
async function imported(organizationId: EntityId, path = ASSISTANT) {
  const { channels, users } = composeFeatures({ ...test.platform, store, readModel });
  const parts = {
    channels,
    users,
    agents: { find: async () => null },
    organizations: { summary: async () => null, application: async () => null },
    organizationId,
  };
  const { signal } = new AbortController();
  const target = new ImportTarget(parts, new StoreRetry({ waitMs: 0, signal }));
  const { source } = await openSource(path, null);
  const ids = new Set<EntityId>();
  for await (const { channel } of source.jobs(0)) if (channel !== null) ids.add(target.channelId(channel));
  const before = store.appends;
  const problems: unknown[] = [];
  const observer = {
    bad: (problem: unknown) => void problems.push(problem),
    skipped: () => undefined,
    leftOut: () => undefined,
    advanced: () => undefined,
  };
  const { counts } = await runImport(source, target, {
    from: { checkpoint: 0, counts: NOTHING_YET },
    signal,
    observer,
  });
  expect(problems).toEqual([]);
  return { counts, ids: [...ids], appends: store.appends - before };
}

it('is an append for each conversation, and none for those that were imported before', async () => {
  const organizationId = newId();
  const first = await imported(organizationId);
  expect(first.counts.channels).toBeGreaterThan(5);
  expect(first.appends).toBe(first.counts.channels);
  const posts = await postsIn(first.ids);
  expect(posts).toBe(first.counts.imported);
  const again = await imported(organizationId);
  expect(again).toMatchObject({ appends: 0, counts: { imported: 0, already: posts, bad: 0 } });
});

it('of a file that two processes import at the same time posts each message once', async () => {
  const organizationId = newId();
  const both = await Promise.all([imported(organizationId), imported(organizationId)]);
  const [{ ids, counts }] = both;
  const posts = await postsIn(ids);
  expect(both.map((one) => one.counts.imported + one.counts.already)).toEqual([posts, posts]);
  expect(both[0].counts.imported + both[1].counts.imported).toBe(posts);
  expect(counts.channels).toBe(ids.length);
});

it('reads no channel that is expected to be new, looks up nothing in it, and publishes no frames', async () => {
  const organizationId = newId();
  const path = join(work, 'talks.jsonl');
  const talk = (n: number): object[] => ['user', 'assistant'].map((role) => ({ role, content: `${n}` }));
  const write = (count: number): Promise<void> =>
    writeFile(path, Array.from({ length: count }, (_, n) => JSON.stringify({ messages: talk(n) })).join('\n'));
  await write(300);
  const before = { reads: store.reads, lookups: readModel.lookups, published: readModel.published.length };
  const first = await imported(organizationId, path);
  expect(first.counts).toMatchObject({ channels: 300, imported: 600, already: 0 });
  expect(first.appends).toBe(300);
  // The first ones begin together, before it is known that they are new.
  expect(store.reads - before.reads).toBeLessThan(100);
  expect(readModel.lookups - before.lookups).toBe(0);
  const published = readModel.published.slice(before.published);
  expect(published.length).toBe(300);
  expect(published.filter((message) => !/^H 3$/.test(message))).toEqual([]);

  // New ones, some that exist, and new ones again.
  await write(700);
  const more = await imported(organizationId, path);
  expect(more.counts).toMatchObject({ channels: 700, imported: 800, already: 600, bad: 0 });
  expect(await postsIn(more.ids)).toBe(1_400);
});

it('of messages whose senders have long names fits into appends', async () => {
  const path = join(work, 'names.jsonl');
  const channel = { id: newId(), name: 'Names', channel_type: 'chat', participants: [] };
  const interactions = Array.from({ length: 150 }, (_, n) => ({
    channel_id: channel.id,
    span_id: newId(),
    parent_span_id: null,
    content_role: 'user_message',
    content: [{ type: 'text', text: `${n}` }],
    participant: { type: 'authenticated_user', user_id: newId() },
    export: { sender_name: 'é'.repeat(5_000) },
  }));
  await writeFile(path, [channel, ...interactions].map((line) => JSON.stringify(line)).join('\n'));
  const { counts, ids } = await imported(newId(), path);
  expect(counts).toMatchObject({ channels: 1, imported: 150 });
  expect(await postsIn(ids)).toBe(150);
});

/** Also that each channel was created, and before its messages. */
async function postsIn(ids: readonly EntityId[]): Promise<number> {
  let posts = 0;
  for (const id of ids) {
    const types: string[] = [];
    for await (const { type } of store.readStream(streamName('channel', id))) types.push(type);
    expect(types.filter((type) => type !== 'InteractionPosted.v1')).toEqual(['ChannelCreated.v1']);
    expect(types[0]).toBe('ChannelCreated.v1');
    posts += types.length - 1;
  }
  return posts;
}
