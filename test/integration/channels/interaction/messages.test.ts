/* What the sender of a message may do with it afterwards, and what others then see of it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { userIdOf } from '#libs/features/users/index.ts';
import { register, Signer } from '#test/support/member-tokens.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let shop: Signer;
let ada: string;
let bob: string;

beforeAll(async () => {
  api = await startTestApi();
  shop = await Signer.create('EdDSA', 'https://shop.example.org', 'one');
  await register(api, shop);
  [ada, bob] = [await shop.token('ada'), await shop.token('bob')];
  for (const key of [ada, bob]) await send(key, 'GET', 'channels');
});
afterAll(() => api.stop());

const send = (key: string, method: Call['method'], path: string, body?: object, headers = {}): Promise<Answer> =>
  api.call({ method, url: `/api/v1/${path}`, key, headers, ...(body && { body }) });
const said = (text: string) => ({ content: [{ type: 'text', text }] });
const userId = (subject: string) => userIdOf({ organizationId: api.organizationId, issuer: shop.issuer, subject });

async function newChannel(): Promise<string> {
  const participants = ['ada', 'bob'].map((one) => ({ type: 'authenticated_user', user_id: userId(one) }));
  return (await send(api.rootKey, 'POST', 'channels', { name: 'Lab', participants })).json.id;
}

async function posted(channel: string, text: string, more: object = {}, key = ada): Promise<Answer['json']> {
  const answer = await send(key, 'POST', `channels/${channel}/interactions`, { ...said(text), ...more });
  expect(answer.status).toBe(200);
  return answer.json;
}

/** All frames of the channel, as a client that resumes from its beginning receives them. */
async function frames(channel: string): Promise<{ seq: number; type: string; data: Answer['json'] }[]> {
  const found = [];
  for await (const page of api.features.realtime.log.framesAfter(api.organizationId, channel, 0)) found.push(...page);
  return found.map(({ json }) => JSON.parse(json));
}

describe('a message that its sender edits', () => {
  it('keeps its place, and shows the new content wherever it is read', async () => {
    const channel = await newChannel();
    const first = await posted(channel, 'the frist text');
    const reply = await posted(channel, 'a reply', { parent_span_id: first.span_id }, bob);
    await send(bob, 'PUT', `interactions/${first.id}/reactions/👍`);
    const edited = await send(ada, 'PATCH', `interactions/${first.id}`, said('the first text'));
    expect(edited).toMatchObject({ status: 200 });
    const { edited_at: editedAt, reactions, ...rest } = edited.json;
    expect(rest).toEqual({ ...first, ...said('the first text'), reactions: undefined });
    expect(reactions).toMatchObject([{ emoji: '👍', count: 1 }]);
    expect(Date.parse(editedAt)).toBeGreaterThanOrEqual(Date.parse(first.created_at));

    const again = await send(ada, 'PATCH', `interactions/${first.id}`, said('the first text'));
    expect(again.headers['parley-position']).toBe(edited.headers['parley-position']);
    expect((await send(bob, 'GET', `interactions/${first.id}`)).json).toMatchObject(said('the first text'));
    const tree = await send(bob, 'GET', `interactions/${first.id}?include_nested_interactions=true`);
    expect(tree.json).toMatchObject({ ...said('the first text'), nested_interactions: [{ id: reply.id }] });
    const list = (query: string) => send(bob, 'GET', `channels/${channel}/interactions?order=asc&${query}`);
    expect((await list('')).json).toMatchObject({
      items: [said('the first text'), { id: reply.id }],
      meta: { sequence: 5 },
    });
    expect((await list('as_of=5')).json.items[0]).toMatchObject({ ...said('the first text'), edited_at: editedAt });
    const before = (await list('as_of=4')).json.items[0];
    expect(before).toMatchObject(said('the frist text'));
    expect(before).not.toHaveProperty('edited_at');
    expect((await frames(channel)).map(({ type, data }) => [type, data?.content?.[0]?.text])).toEqual([
      ['channel.created', undefined],
      ['interaction.posted', 'the frist text'],
      ['interaction.posted', 'a reply'],
      ['reaction.added', undefined],
      ['interaction.edited', 'the first text'],
    ]);
  });

  it('is its own, complete, and not an agent’s tool call', async () => {
    const channel = await newChannel();
    const { id } = await posted(channel, 'mine');
    expect(await send(bob, 'PATCH', `interactions/${id}`, said('yours'))).toMatchObject({ status: 403 });
    expect(await send(bob, 'DELETE', `interactions/${id}`)).toMatchObject({ status: 403 });
    const open = await posted(channel, 'not yet', { complete: false });
    for (const method of ['PATCH', 'DELETE'] as const) {
      const refused = await send(ada, method, `interactions/${open.id}`, said('x'));
      expect(refused).toMatchObject({ status: 409, json: { code: 'not_editable' } });
    }
    const result = {
      content: [{ type: 'tool_call_result', tool_name: 't', tool_result: {} }],
      content_role: 'tool_call_result',
    };
    const tool = await send(api.rootKey, 'POST', `channels/${channel}/interactions`, {
      ...result,
      participant: { type: 'agent', agent_id: 'a' },
    });
    expect(await send(api.rootKey, 'DELETE', `interactions/${tool.json.id}`)).toMatchObject({ status: 409 });
    const call = { content: [{ type: 'tool_call', tool_name: 't', tool_args: {} }] };
    expect(await send(ada, 'PATCH', `interactions/${id}`, call)).toMatchObject({
      status: 403,
      json: { code: 'not_for_members' },
    });
    expect(await send(ada, 'PATCH', `interactions/${id}`, {})).toMatchObject({ status: 422 });
    const readOnly = await shop.token('ada', { parley_scopes: ['read'] });
    expect(await send(readOnly, 'DELETE', `interactions/${id}`)).toMatchObject({ status: 403 });
    await send(api.rootKey, 'POST', `channels/${channel}/archive`);
    expect(await send(ada, 'PATCH', `interactions/${id}`, said('late'))).toMatchObject({
      status: 409,
      json: { code: 'archived' },
    });
  });

  it('by two devices at once has the content of one of them, and both edits are in the log', async () => {
    const channel = await newChannel();
    const { id } = await posted(channel, 'zero');
    const texts = ['one', 'two', 'three', 'four'];
    const answers = await Promise.all(texts.map((text) => send(ada, 'PATCH', `interactions/${id}`, said(text))));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const edits = (await frames(channel)).filter(({ type }) => type === 'interaction.edited');
    expect(edits.map(({ data }) => data.content[0].text).toSorted()).toEqual(texts.toSorted());
    expect((await send(ada, 'GET', `interactions/${id}`)).json.content).toEqual(edits.at(-1)?.data.content);
  });
});

describe('a message that its sender deletes', () => {
  it('leaves its place, sender and time, and its content is in no read, of the past neither', async () => {
    const channel = await newChannel();
    const secret = 'my password is rosebud';
    const first = await posted(channel, secret, { metadata: { note: secret } });
    const reply = await posted(channel, 'a reply', { parent_span_id: first.span_id }, bob);
    await send(ada, 'PATCH', `interactions/${first.id}`, said(`${secret}, still`));
    const open = await posted(channel, secret, { complete: false });
    await send(ada, 'POST', `interactions/${open.id}/content`, said(secret));
    await send(ada, 'POST', `interactions/${open.id}/complete`, {});
    await send(ada, 'DELETE', `interactions/${open.id}`);
    const deleted = await send(ada, 'DELETE', `interactions/${first.id}`, undefined, { 'idempotency-key': 'once' });
    expect(deleted.status).toBe(200);
    const { deleted_at: at, ...rest } = deleted.json;
    expect(rest).toEqual({ ...first, content: [], metadata: null, invocation_config: null });
    expect(typeof at).toBe('string');
    const again = await send(ada, 'DELETE', `interactions/${first.id}`);
    expect(again.json).toEqual(deleted.json);

    const { meta } = (await send(bob, 'GET', `channels/${channel}/interactions`)).json;
    for (let asOf = 2; asOf <= meta.sequence; asOf += 1) {
      for (const path of [`interactions/${first.id}?`, `channels/${channel}/interactions?include_incomplete=true&`]) {
        const read = await send(
          bob,
          'GET',
          `${path}include_nested_interactions=true&as_of=${asOf}`.replace(
            'include_nested_interactions=true&',
            path.startsWith('channels') ? '' : 'include_nested_interactions=true&',
          ),
        );
        expect(read.status).toBe(200);
        expect(read.bytes).not.toContain('rosebud');
      }
    }
    const all = await frames(channel);
    expect(JSON.stringify(all)).not.toContain('rosebud');
    expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1));
    expect(all.at(-1)).toMatchObject({
      type: 'interaction.deleted',
      data: { id: first.id, content: [], deleted_at: at },
    });
    const tree = await send(bob, 'GET', `interactions/${first.id}?include_nested_interactions=true`);
    expect(tree.json.nested_interactions).toMatchObject([{ id: reply.id, ...said('a reply') }]);
    expect(await send(ada, 'PATCH', `interactions/${first.id}`, said('back'))).toMatchObject({
      status: 409,
      json: { code: 'deleted' },
    });
  });

  it('does so after a rebuild of the read models', async () => {
    const channel = await newChannel();
    const { id } = await posted(channel, 'rosebud');
    await send(ada, 'DELETE', `interactions/${id}`);
    const other = await api.startInstance();
    const read = await other.call({ method: 'GET', url: `/api/v1/interactions/${id}?as_of=2`, key: ada });
    expect(read.json).toMatchObject({ id, content: [] });
    await other.stop();
  });
});

describe('a pinned interaction', () => {
  it('is shown by its channel until it is unpinned or deleted', async () => {
    const channel = await newChannel();
    const [one, two] = [await posted(channel, 'one'), await posted(channel, 'two')];
    const pin = (id: string, key = bob) => send(key, 'PUT', `interactions/${id}/pin`);
    expect((await pin(one.id)).json.pinned_interactions).toMatchObject([
      { interaction_id: one.id, pinned_by: { type: 'user', id: userId('bob') } },
    ]);
    const twice = await pin(one.id, ada);
    expect(twice.json.pinned_interactions).toHaveLength(1);
    await pin(two.id);
    const ids = async () =>
      (await send(ada, 'GET', `channels/${channel}`)).json.pinned_interactions.map(
        (each: Answer['json']) => each.interaction_id,
      );
    expect(await ids()).toEqual([one.id, two.id]);
    await send(ada, 'DELETE', `interactions/${one.id}`);
    expect(await ids()).toEqual([two.id]);
    expect(await pin(one.id)).toMatchObject({ status: 404 });
    expect((await send(ada, 'DELETE', `interactions/${two.id}/pin`)).json.pinned_interactions).toEqual([]);
    expect(await send(ada, 'DELETE', `interactions/${two.id}/pin`)).toMatchObject({ status: 200 });
    expect(
      (await frames(channel))
        .filter(({ type }) => type === 'channel.updated')
        .map(({ data }) => data.pinned_interactions.length),
    ).toEqual([1, 2, 1, 0]);
  });

  it('is one of at most fifty', async () => {
    const channel = await newChannel();
    for (let count = 0; count < 50; count += 1) {
      const { id } = await posted(channel, 'x');
      expect(await send(ada, 'PUT', `interactions/${id}/pin`)).toMatchObject({ status: 200 });
    }
    const { id } = await posted(channel, 'x');
    expect(await send(ada, 'PUT', `interactions/${id}/pin`)).toMatchObject({
      status: 409,
      json: { code: 'too_many_pinned' },
    });
  });
});
