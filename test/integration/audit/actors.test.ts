/** Who did what: the actor of events in event streams and in the log, deleted files, and what they leave behind. */
import { createHash } from 'node:crypto';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { userIdOf } from '#libs/features/users/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { DocumentsApi } from '#test/support/documents-api.ts';
import { eventually } from '#test/support/eventually.ts';
import { register, Signer } from '#test/support/member-tokens.ts';
import type { Call } from '#test/support/test-api.ts';

// eslint-disable-next-line typescript/no-explicit-any -- tests assert the shape that they expect
type Json = any;

let documents: DocumentsApi;
let url: string;
let rootKey: string;
const root: Json = { type: 'user', on_behalf_of: null };

beforeAll(async () => {
  documents = await DocumentsApi.start();
  const { api } = documents;
  url = await api.listen();
  rootKey = api.rootKey;
  root.id = api.userId;
});
afterAll(async () => {
  await documents.api.features.realtime.node().stop();
  await documents.stop();
});

const call = (method: Call['method'], path: string, body?: object, key = rootKey) =>
  documents.api.call({ method, url: `/api/v1/${path}`, key, ...(body && { body }) });

async function newKey(principal: object, scopes: string[]): Promise<{ key: string; id: string }> {
  const { status, json } = await call('POST', 'keys', { name: 'k', scopes, principal, access: 'organization' });
  expect(status).toBe(200);
  return json;
}

async function newUser(name: string): Promise<string> {
  return (await call('POST', 'users', { display_name: name })).json.id;
}

/** The frames of a channel from its first event on, once there are so many. */
async function framesOf(channel: string, count: number, key = rootKey): Promise<Json[]> {
  const end = new AbortController();
  const headers = { authorization: `Bearer ${key}`, accept: 'text/event-stream' };
  const response = await fetch(`${url}/api/v1/channels/${channel}/events?after=0`, { headers, signal: end.signal });
  expect(response.status).toBe(200);
  let text = '';
  try {
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const frames = [...text.matchAll(/^data: (\{"frame":"event".*)$/gm)].map(([, json]) => JSON.parse(json ?? ''));
      if (frames.length >= count) return frames;
    }
  } finally {
    end.abort();
  }
  throw new Error(`the stream ended: ${text}`);
}

it('events name the user or service, its key, and in whose name it acted', async () => {
  const ada = await newUser('Ada');
  const own = await newKey({ type: 'user', id: ada }, ['read', 'write']);
  const service = newId();
  const backend = await newKey({ type: 'service', id: service }, ['read', 'write', 'impersonate']);
  const participants = [{ type: 'authenticated_user', user_id: ada }];
  const { id, participants: records } = (await call('POST', 'channels', { name: 'Orders', participants })).json;
  const text = (said: string) => ({ content: [{ type: 'text', text: said }] });
  const post = (body: object, key: string) => call('POST', `channels/${id}/interactions`, body, key);
  const { json: hello } = await post(text('hello'), own.key);
  await post({ ...text('on the phone'), participant: { type: 'authenticated_user', user_id: ada } }, backend.key);
  expect(
    (await call('PUT', `interactions/${hello.id}/reactions/${encodeURIComponent('👍')}`, undefined, own.key)).status,
  ).toBe(200);
  await call('DELETE', `channels/${id}/participants/${records[0].id}`);

  const actors = (await framesOf(id, 5)).map(({ type, actor }) => [type, actor]);
  const itself = { type: 'user', id: ada, key_id: own.id, on_behalf_of: null };
  const represented = { type: 'service', id: service, key_id: backend.id, on_behalf_of: { type: 'user', id: ada } };
  const administrator = { ...root, key_id: expect.stringMatching(/^[0-9a-f-]{32,36}$/) };
  expect(actors).toEqual([
    ['channel.created', administrator],
    ['interaction.posted', itself],
    ['interaction.posted', represented],
    ['reaction.added', itself],
    ['participant.left', administrator],
  ]);
});

it('events of a member name the issuer and the key that verified its token', async () => {
  const shop = await Signer.create('EdDSA', 'https://shop.example.org', 'one');
  const issuerId = await register(documents.api, shop);
  const token = await shop.token('ada');
  await call('GET', 'channels', undefined, token);
  const { organizationId } = documents.api;
  const user = userIdOf({ organizationId, issuer: shop.issuer, subject: 'ada' });
  const participants = [{ type: 'authenticated_user', user_id: user }];
  const { id } = (await call('POST', 'channels', { name: 'Orders', participants })).json;
  await call('POST', `channels/${id}/interactions`, { content: [{ type: 'text', text: 'hi' }] }, token);
  const [, posted] = await framesOf(id, 2, token);
  expect(posted.actor).toEqual({ type: 'user', id: user, key_id: expect.any(String), on_behalf_of: null });
  expect(posted.actor.key_id).toMatch(new RegExp(`^${issuerId}\\.[\\w-]{43}$`));
});

it('one PATCH of two fields is one event that names both', async () => {
  const { id } = (await call('POST', 'channels', { name: 'Orders' })).json;
  await call('PATCH', `channels/${id}`, { name: 'Returns', meta_data: { order: 1 } });
  await call('PATCH', `channels/${id}`, { agent_invocation_behavior: 'intelligent' });
  const [, both, one] = await framesOf(id, 3);
  expect(both).toMatchObject({ type: 'channel.updated', changed: ['name', 'meta_data'], data: { name: 'Returns' } });
  expect(one).toMatchObject({ changed: ['agent_invocation_behavior'], data: { meta_data: { order: 1 } } });
  expect((await call('GET', `channels/${id}`)).json).toMatchObject({ name: 'Returns', meta_data: { order: 1 } });
});

it('a deleted file leaves a tombstone, and an event in its channel by whoever deleted it', async () => {
  const ada = await newUser('Ada');
  const own = await newKey({ type: 'user', id: ada }, ['read', 'write']);
  const file = Buffer.from('The buoy drifts to the north.');
  const sha256 = createHash('sha256').update(file).digest('hex');
  const { id: channel } = (await call('POST', 'channels', { name: 'Harbour' })).json;
  const target = `/api/v1/media/uploads?${new URLSearchParams({ channel, name: 'buoy.txt' })}`;
  const uploaded = await documents.call('POST', target, file, { 'content-type': 'text/plain' });
  const { id } = uploaded.json;
  const ready = await eventually(async () => {
    const { json } = await call('GET', `media/${id}`);
    expect(json.status).toBe('Ready');
    return json;
  });
  expect(ready).toMatchObject({ channel, message: null, sha256 });
  expect((await call('GET', `media/deletions/${id}`)).status).toBe(404);

  expect((await call('DELETE', `media/${id}`, undefined, own.key)).status).toBe(204);
  expect((await call('GET', `media/${id}`)).status).toBe(404);
  const { status, json: deletion } = await call('GET', `media/deletions/${id}`);
  expect(status).toBe(200);
  const details = { name: 'buoy.txt', sha256, bytes: file.length, interaction_id: ready.interaction_id };
  expect(deletion).toEqual({
    id,
    ...details,
    channel,
    deleted_at: expect.any(String),
    deleted_by: { type: 'user', id: ada, key_id: own.id },
  });
  expect((await call('GET', `media/deletions/${id}`, undefined, documents.foreignKey)).status).toBe(404);

  const [, , deleted] = await framesOf(channel, 3);
  expect(deleted).toMatchObject({
    type: 'file.deleted',
    actor: { type: 'user', id: ada, key_id: own.id, on_behalf_of: null },
    data: { channel_id: channel, media_id: id, ...details },
  });
});

it('a file of a channel that is archived by now is deleted all the same', async () => {
  const { id: channel } = (await call('POST', 'channels', { name: 'Harbour' })).json;
  const { id } = (await call('POST', 'media', { channel, name: 'nothing' })).json;
  await call('POST', `channels/${channel}/archive`);
  expect((await call('DELETE', `media/${id}`)).status).toBe(204);
  const { store } = documents.api.stores.platform;
  await eventually(async () => {
    const types: string[] = [];
    for await (const event of store.readStream(`media-${id}`)) types.push(event.type);
    expect(types).toEqual(['MediaCreated.v1', 'MediaDeleted.v1', 'MediaDeletionNoted.v1']);
  });
  expect((await call('GET', `media/deletions/${id}`)).json).toMatchObject({ sha256: null, channel });
});
