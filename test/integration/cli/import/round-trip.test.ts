/** A channel that is exported, and imported into another organization. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type DataFolder, openDataFolder } from '#infra/data-folder/index.ts';
import { runParley } from '#test/support/command-line.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

type Json = Record<string, unknown>;

let api: TestApi;
let folder: DataFolder;
let dataDir: string;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'parley-test-round-trip-'));
  api = await startTestApi();
  folder = await openDataFolder(dataDir);
  await folder.publish({ eventstoreUrl: api.stores.eventStore.url, redisUrl: api.stores.redis.url });
});
afterAll(async () => {
  await folder.release();
  await api.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const command = async (...args: string[]) => {
  const { stdout, stderr, exitCode } = await runParley({ DATA_DIR: dataDir }, ...args);
  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  return stdout;
};
const json = async (...args: string[]) => JSON.parse(await command(...args, '--json'));

const organization = async (name: string) => {
  const { id } = await json('organizations', 'create', name);
  const scopes = ['--scopes', 'read,write,impersonate'];
  const { key } = await json('keys', 'create', '--service', 'test', ...scopes, '-o', id);
  const call = async (method: 'GET' | 'POST' | 'PUT', url: string, body?: object, as = key) => {
    const answer = await api.call({ method, url: `/api/v1/${url}`, key: as, ...(body && { body }) });
    expect({ url, status: answer.status, json: answer.status === 200 ? null : answer.json }).toEqual({
      url,
      status: 200,
      json: null,
    });
    return answer.json;
  };
  return { id: String(id), call };
};

/** Everything of a channel and its threads that an import can keep. */
async function contentOf({ call }: Awaited<ReturnType<typeof organization>>, id: string): Promise<Json> {
  const { participants, ...channel } = await call('GET', `channels/${id}`);
  const { items } = await call('GET', `channels/${id}/interactions?order=asc&size=100&include_incomplete=true`);
  const spans = new Map(items.map((one: Json) => [one['id'], one['span_id']]));
  const { items: threads } = await call('GET', `channels?parent_channel_id=${id}&size=100`);
  const ids = { id: null, created_at: null, modified: null, parent_channel_id: null, origin_message_id: null };
  return {
    ...channel,
    ...ids,
    participants: participants.map(nameOf),
    interactions: items.map((one: Json) => interactionOf(one)),
    threads: await Promise.all(
      threads.map(async (thread: Json) => ({
        about: spans.get(thread['origin_message_id']),
        ...(await contentOf({ id: '', call }, String(thread['id']))),
      })),
    ),
  };
}

function interactionOf({ id: _id, channel_id: _channel, created_at: created, ...one }: Json): Json {
  const { reactions, participant, metadata } = one as { reactions: Json[] | null; participant: Json; metadata: Json };
  return {
    ...one,
    organization_id: null,
    participant: nameOf(participant),
    // An import adds the time of the source.
    metadata: { source_time: created, ...metadata },
    reactions: reactions?.map(({ interaction_id: _own, target_sender_id: _sender, ...reaction }) => reaction) ?? null,
  };
}

/** Users and agents of the other organization become participants with their names. */
function nameOf(one: Json): unknown {
  const metadata = { ...(one['user_metadata'] as Json), ...(one['agent_metadata'] as Json) };
  const isUser = String(one['type']).endsWith('user');
  const name = one['display_name'] ?? (one['name'] || metadata['name']);
  return [
    isUser ? 'user' : one['type'] === 'system' ? 'system' : 'agent',
    name ?? known.get(String(one['user_id'] ?? one['agent_id'])),
  ];
}

const known = new Map<string, string>();

it('is equal but for ids', { timeout: 120_000 }, async () => {
  const [from, to] = [await organization('From'), await organization('To')];
  const user = await json('users', 'create', 'Ada', '--email', 'ada@example.org', '-o', from.id);
  const other = await json('users', 'create', 'Ben', '--email', 'ben@example.org', '-o', from.id);
  const { key } = await json('keys', 'create', '--user', user.id, '-o', from.id);
  const agent = await from.call('POST', 'agents', { name: 'Robin' });
  known.set(user.id, 'Ada').set(other.id, 'Ben').set(agent.id, 'Robin');
  const channel = await from.call('POST', 'channels', {
    name: 'Orders',
    channel_type: 'collaboration',
    meta_data: { region: 'north', tags: ['a', 'b'] },
    participants: [
      { type: 'authenticated_user', user_id: user.id },
      { type: 'agent', id: agent.id },
      { type: 'non_authenticated_user', user_metadata: { name: 'Guest' } },
      { type: 'external_agent', agent_metadata: { name: 'Bot' } },
    ],
  });
  const post = (id: string, body: Json) => from.call('POST', `channels/${id}/interactions`, body);
  const say = (id: string, text: string, more: Json = {}) => post(id, { content: [{ type: 'text', text }], ...more });
  const asUser = { participant: { type: 'authenticated_user', user_id: user.id } };
  const asAgent = { participant: { type: 'agent', agent_id: agent.id } };
  const question = await say(channel.id, 'Where is my order?', { ...asUser, metadata: { page: 3 } });
  const below = { ...asAgent, parent_span_id: question.span_id };
  await say(channel.id, 'Let me think.', { ...below, content_role: 'agent_reasoning' });
  const called = await post(channel.id, {
    ...below,
    content_role: 'tool_call',
    content: [{ type: 'tool_call', tool_name: 'find', tool_args: { id: [1, { a: null }] }, tool_call_id: 'c1' }],
  });
  await post(channel.id, {
    ...below,
    parent_span_id: called.span_id,
    content_role: 'tool_call_result',
    content: [{ type: 'tool_call_result', tool_name: 'find', tool_result: { at: 'sea' }, tool_call_id: 'c1' }],
  });
  const answer = await say(channel.id, 'At sea.', below);
  await say(channel.id, 'From someone who is no participant', {
    participant: { type: 'authenticated_user', user_id: other.id },
  });
  const about = { media_id: 'm1', mime_type: 'image/png', width: 4, height: 3, description: 'a map' };
  await post(channel.id, {
    participant: { type: 'non_authenticated_user', user_metadata: { name: 'Guest' } },
    content: [
      { type: 'text', text: 'See' },
      { type: 'media', meta_data: about, media_url: 'https://example.com/a.png' },
    ],
  });
  await say(channel.id, 'Closed at six.', { participant: { type: 'system' }, content_role: 'channel_notification' });
  const thread = await from.call('POST', 'channels', {
    name: 'About the answer',
    parent_channel_id: channel.id,
    origin_message_id: answer.id,
    participants: [{ type: 'authenticated_user', user_id: user.id }],
  });
  const threaded = await say(thread.id, 'Which sea?', asUser);
  for (const [id, emoji, body, as] of [
    [answer.id, '👍', {}, key],
    [answer.id, '👍', { agent_id: agent.id }, undefined],
    [answer.id, '🎉', {}, key],
    [threaded.id, '👀', { agent_id: agent.id }, undefined],
  ] as const) {
    await from.call('PUT', `interactions/${id}/reactions/${encodeURIComponent(emoji)}`, body, as);
  }

  const path = join(dataDir, 'orders.jsonl');
  await command('export', channel.id, '--output', path, '-o', from.id);
  expect(await json('import', path, '-o', to.id)).toMatchObject({ channels: 2, imported: 9, already: 0, bad: 0 });
  const { items } = await to.call('GET', 'channels?size=100');
  const copy = items.find(({ name }: Json) => name === 'Orders');
  const before = await contentOf(from, channel.id);
  const after = await contentOf(to, copy.id);
  expect(after).toEqual(before);
  expect(after).toMatchObject({
    threads: [{ about: answer.span_id, interactions: [{ reactions: [{ emoji: '👀' }] }] }],
  });

  // Run again, it adds nothing, and says so.
  expect(await json('import', path, '-o', to.id)).toMatchObject({ imported: 0, already: 9, bad: 0 });
  expect(await contentOf(to, copy.id)).toEqual(after);
  // The copy can be exported and imported, too.
  const third = await organization('Third');
  await command('export', copy.id, '--output', path, '-o', to.id);
  await json('import', path, '-o', third.id);
  const { items: copies } = await third.call('GET', 'channels?size=100');
  expect(await contentOf(third, copies.find(({ name }: Json) => name === 'Orders').id)).toEqual(after);

  // Without the channel that it belongs to, a thread is a channel of its own.
  await command('export', thread.id, '--output', path, '-o', from.id);
  expect(await json('import', path, '-o', third.id)).toMatchObject({ channels: 1, imported: 1, bad: 0 });
  const alone = (await third.call('GET', 'channels?size=100&channel_type=chat')).items[0];
  expect(alone).toMatchObject({ name: 'About the answer', meta_data: { source_parent_channel_id: channel.id } });
});
