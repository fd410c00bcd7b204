/* What an import costs the event store: a conversation that fits into an append is one, with the channel that it creates. */
import { join } from 'node:path';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { type EntityId, newId } from '#libs/kernel/ids.ts';
import { streamName } from '#libs/platform/streams/index.ts';
import { ImportTarget } from '#services/cli/import/import-target.ts';
import { openSource } from '#services/cli/import/open-source.ts';
import { NOTHING_YET, runImport } from '#services/cli/import/run-import.ts';
import { StoreRetry } from '#services/cli/import/store-retry.ts';
import { composeFeatures } from '#services/features.ts';
import { CountingStore } from '#test/support/counting-store.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';

const ASSISTANT = join(import.meta.dirname, '../../../../docs/samples/assistant.jsonl');

let test: TestPlatform;
let store: CountingStore;

beforeAll(async () => {
  test = await startTestPlatform();
  store = new CountingStore(test.platform.store);
});
afterAll(() => test.stop());

/** @returns what was imported, and the appends that it took */
async function imported(organizationId: EntityId) {
  const { channels, users } = composeFeatures({ ...test.platform, store });
  const parts = {
    channels,
    users,
    agents: { find: async () => null },
    organizations: { summary: async () => null, application: async () => null },
    organizationId,
  };
  const { signal } = new AbortController();
  const target = new ImportTarget(parts, new StoreRetry({ waitMs: 0, signal }));
  const { source } = await openSource(ASSISTANT, null);
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
  // Both say that they have imported what they appended at the same time: the event store knows the ids of the events.
  expect(both.map((one) => one.counts.imported + one.counts.already)).toEqual([posts, posts]);
  expect(counts.channels).toBe(ids.length);
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
