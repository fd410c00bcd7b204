/** Every route with every kind of member and forged token: what a caller may not see is answered as what does not exist. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { interactionId } from '#libs/features/channels/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { userIdOf } from '#libs/features/users/index.ts';
import { register, Signer } from '#test/support/member-tokens.ts';
import { type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

interface Ids {
  readonly channel: string;
  readonly interaction: string;
  readonly participant: string;
  readonly run: string;
  readonly media: string;
  /** Of ada. */
  readonly upload: string;
}
type Request = (ids: Ids) => Pick<Call, 'method' | 'url' | 'body' | 'headers'>;

const of = (method: Call['method'], path: (ids: Ids) => string, body?: object): Request => {
  return (ids) => ({ method, url: `/api/v1/${path(ids)}`, ...(body && { body }) });
};
const text = { content: [{ type: 'text', text: 'hello' }] };

/** Routes that are open to members and name a channel, by the names of their operations. */
const IN_CHANNELS: Record<string, Request> = {
  getChannel: of('GET', ({ channel }) => `channels/${channel}`),
  updateChannel: of('PATCH', ({ channel }) => `channels/${channel}`, { name: 'taken over' }),
  archiveChannel: of('POST', ({ channel }) => `channels/${channel}/archive`),
  listChannelParticipants: of('GET', ({ channel }) => `channels/${channel}/participants`),
  addChannelParticipant: of('POST', ({ channel }) => `channels/${channel}/participants`, {
    type: 'external_agent',
    agent_metadata: { name: 'spy' },
  }),
  removeChannelParticipant: of(
    'DELETE',
    ({ channel, participant }) => `channels/${channel}/participants/${participant}`,
  ),
  getReadMarker: of('GET', ({ channel }) => `channels/${channel}/read_marker`),
  listReadMarkers: of('GET', ({ channel }) => `channels/${channel}/read_markers`),
  moveReadMarker: of('PUT', ({ channel }) => `channels/${channel}/read_marker`, { sequence: 1 }),
  listInteractions: of('GET', ({ channel }) => `channels/${channel}/interactions?include_incomplete=true`),
  searchInteractions: of('GET', ({ channel }) => `interactions/search?q=hello&channel_id=${channel}`),
  postInteraction: of('POST', ({ channel }) => `channels/${channel}/interactions`, text),
  listInvocations: of('GET', ({ channel }) => `channels/${channel}/invocations`),
  createWebsocketTicket: of('POST', ({ channel }) => `channels/${channel}/websocket_ticket`),
  createWebsocketTicketAlias: of('POST', ({ channel }) => `channels/${channel}/websocket_tickets`),
  streamChannelEvents: of('GET', ({ channel }) => `channels/${channel}/events`),
  getInteraction: of('GET', ({ interaction }) => `interactions/${interaction}?include_incomplete=true`),
  appendInteractionContent: of('POST', ({ interaction }) => `interactions/${interaction}/content`, text),
  completeInteraction: of('POST', ({ interaction }) => `interactions/${interaction}/complete`, {}),
  failInteraction: of('POST', ({ interaction }) => `interactions/${interaction}/fail`, { reason: 'x' }),
  writeInteractionDelta: of('POST', ({ interaction }) => `interactions/${interaction}/deltas`, { text: 'x' }),
  editInteraction: of('PATCH', ({ interaction }) => `interactions/${interaction}`, text),
  deleteInteraction: of('DELETE', ({ interaction }) => `interactions/${interaction}`),
  pinInteraction: of('PUT', ({ interaction }) => `interactions/${interaction}/pin`),
  unpinInteraction: of('DELETE', ({ interaction }) => `interactions/${interaction}/pin`),
  addReaction: of('PUT', ({ interaction }) => `interactions/${interaction}/reactions/%F0%9F%91%8D`),
  removeReaction: of('DELETE', ({ interaction }) => `interactions/${interaction}/reactions/%F0%9F%91%8D`),
  dismissMentionInvitePrompt: of(
    'POST',
    ({ interaction }) => `interactions/${interaction}/mention_invite_prompt/dismiss`,
  ),
  getRun: of('GET', ({ run }) => `runs/${run}`),
  cancelRun: of('POST', ({ run }) => `runs/${run}/cancel`),
  listMedia: of('GET', ({ channel }) => `media?community=${channel}`),
  getMedia: of('GET', ({ media }) => `media/${media}`),
  deleteMedia: of('DELETE', ({ media }) => `media/${media}`),
  createMedia: (ids) => of('POST', () => 'media', { name: 'a file', channel: ids.channel })(ids),
  uploadMedia: of('POST', ({ channel }) => `media/uploads?channel=${channel}`, { file: 'content' }),
  getMediaUpload: of('GET', ({ upload }) => `media/uploads/${upload}`),
  continueMediaUpload: (ids) => ({
    ...of('PATCH', ({ upload }) => `media/uploads/${upload}`, { more: 'content' })(ids),
    headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
  }),
  cancelMediaUpload: of('DELETE', ({ upload }) => `media/uploads/${upload}`),
};
function route(name: string): Request {
  const request = IN_CHANNELS[name];
  if (request === undefined) throw new TypeError(`no route ${name}`);
  return request;
}

/** Routes that concern the caller alone. */
const OF_CALLER = ['listChannels', 'createChannel'];

let api: TestApi;
let shop: Signer;
let owned: Ids;
let tokens: { ada: string; bob: string; eve: string };
let bobsRecord: string;

beforeAll(async () => {
  api = await startTestApi();
  shop = await Signer.create('EdDSA', 'https://shop.example.org', 'one');
  await register(api, shop);
  tokens = { ada: await shop.token('ada'), bob: await shop.token('bob'), eve: await shop.token('eve') };
  for (const key of Object.values(tokens)) await api.call({ method: 'GET', url: '/api/v1/channels', key });
  owned = await channelOf('ada', 'bob');
  await channelOf('eve');
});

afterAll(() => api?.stop());

const userId = (subject: string) => userIdOf({ organizationId: api.organizationId, issuer: shop.issuer, subject });
const call = (key: string | undefined, request: Pick<Call, 'method' | 'url' | 'body' | 'headers'>, headers = {}) =>
  api.call({ ...request, key, headers: { ...request.headers, ...headers } });

async function channelOf(...subjects: string[]): Promise<Ids> {
  const agent = await call(api.rootKey, {
    method: 'POST',
    url: '/api/v1/agents',
    body: { name: 'Clerk', description: 'answers' },
  });
  const participants = [
    ...subjects.map((one) => ({ type: 'authenticated_user', user_id: userId(one) })),
    { type: 'agent', id: agent.json.id },
  ];
  const body = {
    name: 'secret plans',
    participants,
    owner_id: userId(subjects[0] ?? ''),
    agent_invocation_behavior: 'all_messages',
  };
  const { json: channel } = await call(api.rootKey, { method: 'POST', url: '/api/v1/channels', body });
  const posted = await call(api.rootKey, {
    method: 'POST',
    url: `/api/v1/channels/${channel.id}/interactions`,
    body: { ...text, complete: false },
  });
  bobsRecord = channel.participants[1].id;
  // Runs are decided by a worker, which this test does not have: one is requested as a worker does.
  const run = newId();
  const data = {
    id: run,
    agentId: agent.json.id,
    channelId: channel.id,
    messageId: posted.json.id,
    turnId: newId(),
    spanId: newId(),
    depth: 0,
    invocationConfig: null,
  };
  await api.features.runs.request(
    {
      commandId: run,
      organizationId: api.organizationId,
      actor: { type: 'system', id: 'test' },
      at: new Date().toISOString(),
    },
    data,
  );
  const item = { method: 'POST', url: '/api/v1/media', body: { name: 'plan', channel: channel.id } } as const;
  const media = (await call(api.rootKey, item)).json.id;
  const upload = await call(
    await shop.token(subjects[0] ?? ''),
    { method: 'POST', url: `/api/v1/media/uploads?channel=${channel.id}` },
    { 'upload-length': '100' },
  );
  return {
    channel: channel.id,
    interaction: posted.json.id,
    participant: bobsRecord,
    run,
    media,
    upload: upload.json.id,
  };
}

const nowhere: Ids = {
  channel: newId(),
  interaction: interactionId({ channelId: newId(), sequence: 2 as ChannelSequence }),
  participant: newId(),
  run: newId(),
  media: newId(),
  upload: newId(),
};

/** Status and body, without ids that the request itself names. */
async function shown(key: string, request: Request, ids: Ids, headers = {}) {
  const { status, bytes, headers: sent } = await call(key, request(ids), headers);
  const body = bytes.replace(/,"request_id":"[^"]*"/, '');
  return { status, body, etag: sent['etag'], position: sent['parley-position'] };
}

describe('members', () => {
  it('reach the routes that declare it, and no others', async () => {
    const { json: document } = await api.call({ method: 'GET', url: '/openapi.json' });
    const open: string[] = [];
    for (const [path, operations] of Object.entries<Record<string, { operationId: string; security?: [] }>>(
      document.paths,
    )) {
      for (const [method, { operationId, security }] of Object.entries(operations)) {
        if (security?.length === 0) continue;
        const url = path.replaceAll(/\{[^}]*\}/g, newId());
        const answer = await call(tokens.eve, { method: method.toUpperCase() as Call['method'], url });
        expect(answer.status).toBeGreaterThanOrEqual(200);
        const isClosed = answer.status === 403 && ['not_for_members', 'missing_scope'].includes(answer.json.code);
        if (!isClosed) open.push(operationId);
      }
    }
    expect(open.toSorted()).toEqual([...Object.keys(IN_CHANNELS), ...OF_CALLER].toSorted());
  });

  it('of a channel do there what members may do', async () => {
    const ada = (request: Request) => call(tokens.ada, request(owned));
    expect((await ada(route('getChannel'))).json).toMatchObject({ name: 'secret plans', owner_id: userId('ada') });
    expect((await ada(route('listInteractions'))).json.items).toHaveLength(1);
    expect((await ada(route('getRun'))).json).toMatchObject({ channel_id: owned.channel });
    expect((await ada(route('postInteraction'))).json).toMatchObject({
      content_role: 'user_message',
      participant: { type: 'authenticated_user', user_id: userId('ada') },
    });
    expect(await ada(route('addReaction'))).toMatchObject({ status: 200 });
    expect(await ada(route('createWebsocketTicket'))).toMatchObject({ status: 200 });
    const list = await call(tokens.ada, { method: 'GET', url: '/api/v1/channels' });
    expect(list.json).toMatchObject({ items: [{ id: owned.channel }], meta: { total: 1 } });
  });

  it.each(Object.keys(IN_CHANNELS))('of another channel are told nothing by %s', async (name) => {
    const request = route(name);
    const nothing = await shown(tokens.eve, request, nowhere);
    expect(nothing.status).toBe(404);
    expect(await shown(tokens.eve, request, owned)).toEqual(nothing);
  });

  it('are told nothing by lists, filters and names of other channels', async () => {
    const eve = (url: string) => call(tokens.eve, { method: 'GET', url });
    for (const q of ['hello', 'helo', 'hell']) {
      const answer = await eve(`/api/v1/interactions/search?q=${q}`);
      expect(answer).toMatchObject({ status: 200, json: { items: [], meta: { total: 0 } } });
      expect(answer.bytes).not.toContain(owned.channel);
    }
    for (const query of ['', `?participant=${userId('ada')}`, '?channel_type=chat', '?page=2', '?size=1']) {
      const answer = await eve(`/api/v1/channels${query}`);
      expect(answer.bytes).not.toContain(owned.channel);
      expect(answer.json.meta.total).toBeLessThanOrEqual(1);
    }
    const create = (parent: string) =>
      call(tokens.eve, {
        method: 'POST',
        url: '/api/v1/channels',
        body: { name: 'thread', parent_channel_id: parent },
      });
    const [missing, foreign] = [await create(nowhere.channel), await create(owned.channel)];
    expect(foreign.bytes.replaceAll(owned.channel, nowhere.channel)).toBe(missing.bytes);
    expect(foreign.status).toBe(422);
  });

  it('administer a channel only if they own it, and everyone may leave', async () => {
    const ids = await channelOf('ada', 'bob');
    for (const name of ['updateChannel', 'archiveChannel', 'addChannelParticipant']) {
      const answer = await call(tokens.bob, route(name)(ids));
      expect(answer).toMatchObject({ status: 403, json: { code: 'not_owner' } });
    }
    for (const name of ['updateChannel', 'addChannelParticipant']) {
      expect(await call(tokens.ada, route(name)(ids))).toMatchObject({ status: 200 });
    }
    const { json } = await call(tokens.bob, route('listChannelParticipants')(ids));
    const [adas, bobs] = json.items.map((one: { participant_id: string }) => one.participant_id);
    const remove = route('removeChannelParticipant');
    expect(await call(tokens.bob, remove({ ...ids, participant: adas }))).toMatchObject({ status: 403 });
    expect(await call(tokens.bob, remove({ ...ids, participant: bobs }))).toMatchObject({ status: 200 });
    expect(await call(tokens.bob, route('getChannel')(ids))).toMatchObject({ status: 404 });
    expect(await call(tokens.ada, route('archiveChannel')(ids))).toMatchObject({ status: 200 });
  });

  it('post as users only, and no content of agents and tools', async () => {
    const post = (body: object) =>
      call(tokens.ada, { method: 'POST', url: `/api/v1/channels/${owned.channel}/interactions`, body });
    for (const role of [
      'agent_response',
      'agent_reasoning',
      'internal_error',
      'channel_notification',
      'tool_call_result',
    ]) {
      expect(await post({ ...text, content_role: role })).toMatchObject({ status: 403 });
    }
    const result = { type: 'tool_call_result', tool_name: 'pay', tool_result: {} };
    expect(await post({ content: [result] })).toMatchObject({ status: 403 });
    expect(await post({ ...text, participant: { type: 'agent', agent_id: 'clerk' } })).toMatchObject({ status: 403 });
    expect(await post({ ...text, participant: { type: 'authenticated_user', user_id: userId('bob') } })).toMatchObject({
      status: 403,
    });
    const funds = { amount: '1', currency: 'EUR' };
    const payment = { type: 'commit_payment', funds, recipient: 'shop', transaction_id: '1' };
    const card = { type: 'custom_content', name: 'card', version: '1', data: {} };
    const own = await post({ content: [payment, card], complete: false });
    expect(own).toMatchObject({ status: 200 });
    const change = (what: string, body: object, key = tokens.ada) =>
      call(key, { method: 'POST', url: `/api/v1/interactions/${own.json.id}/${what}`, body });
    expect(await change('content', { content: [result] })).toMatchObject({ status: 403 });
    expect(await change('complete', { content: [result] })).toMatchObject({ status: 403 });
    expect(await change('fail', { reason: 'x' }, tokens.bob)).toMatchObject({ status: 403 });
    expect(await change('complete', {})).toMatchObject({ status: 200 });
  });

  it('upload files to channels, and their addresses end with the participation', async () => {
    const ids = await channelOf('ada', 'bob');
    const uploaded = await call(tokens.bob, route('uploadMedia')(ids));
    expect(uploaded).toMatchObject({ status: 200 });
    const item = { method: 'GET', url: `/api/v1/media/${uploaded.json.id}` } as const;
    const list = await call(tokens.ada, route('listMedia')(ids));
    expect(list.json.items.map((one: { id: string }) => one.id)).toContain(uploaded.json.id);
    const fileOf = async (key: string) => new URL((await call(key, item)).json.file_url).pathname;
    const [adas, bobs, roots] = [await fileOf(tokens.ada), await fileOf(tokens.bob), await fileOf(api.rootKey)];
    const base = await api.listen();
    const read = async (path: string) => (await fetch(new URL(path, base))).status;
    expect([await read(adas), await read(bobs)]).toEqual([200, 200]);
    // The creator deletes an item, nobody else.
    expect(await call(tokens.ada, { ...item, method: 'DELETE' })).toMatchObject({ status: 404 });
    const elsewhere = { method: 'POST', url: '/api/v1/media', body: { name: 'x' } } as const;
    expect(await call(tokens.ada, elsewhere)).toMatchObject({ status: 404 });
    const graph = await call(api.rootKey, { method: 'POST', url: '/api/v1/knowledge', body: { name: 'graph' } });
    const into = (id: string) => ({
      ...elsewhere,
      body: { channel: ids.channel, knowledge_graph: id },
    });
    const [known, unknown] = [await call(tokens.ada, into(graph.json.id)), await call(tokens.ada, into(nowhere.media))];
    expect(known.status).toBe(422);
    expect(known.bytes.replaceAll(graph.json.id, nowhere.media)).toBe(unknown.bytes);
    const limited = await shop.token('ada', { parley_scopes: ['read', 'write'] });
    for (const name of ['uploadMedia', 'createMedia', 'getMediaUpload', 'continueMediaUpload', 'cancelMediaUpload']) {
      expect(await call(limited, route(name)(ids))).toMatchObject({ status: 403, json: { code: 'missing_scope' } });
    }
    await call(api.rootKey, route('removeChannelParticipant')({ ...ids, participant: bobsRecord }));
    expect([await read(adas), await read(bobs), await read(roots)]).toEqual([200, 404, 200]);
  });

  it('with a narrowed token only read', async () => {
    const reader = await shop.token('ada', { parley_scopes: ['read'] });
    for (const [name, request] of Object.entries(IN_CHANNELS)) {
      const { method, url } = request(owned);
      if (method === 'GET' || name.startsWith('createWebsocketTicket') || url.endsWith('/events')) continue;
      expect(await call(reader, request(owned))).toMatchObject({ status: 403, json: { code: 'missing_scope' } });
    }
    expect(await call(reader, route('getChannel')(owned))).toMatchObject({ status: 200 });
    const none = await shop.token('ada', { parley_scopes: [] });
    expect(await call(none, route('getChannel')(owned))).toMatchObject({ status: 403 });
  });

  it.each(Object.keys(IN_CHANNELS))('with a forged or expired token are told nothing by %s', async (name) => {
    const request = route(name);
    const other = await Signer.create('EdDSA', 'https://other.example.org', 'one');
    const forged = await shop.forgeries('ada');
    const bad = [
      ...['alg none', 'HMAC with the PEM of the public key', 'expired', 'a key in the header'].map(
        (what) => forged[what] ?? '',
      ),
      await other.token('ada'),
    ];
    for (const key of bad) {
      expect(await shown(key, request, owned)).toEqual(await shown(key, request, nowhere));
      expect((await call(key, request(owned))).status).toBe(401);
    }
  });

  it('by an API key of a user, which is limited to participation unless asked otherwise, have the same rights', async () => {
    const key = async (body: object) =>
      call(api.rootKey, { method: 'POST', url: '/api/v1/keys', body: { name: 'k', ...body } });
    const user = (subject: string) => ({ principal: { type: 'user', id: userId(subject) } });
    const [ada, eve] = [
      (await key({ ...user('ada'), scopes: ['read', 'write'] })).json,
      (await key({ ...user('eve'), scopes: ['read', 'write'] })).json,
    ];
    expect(ada.access).toBe('participation');
    expect(await call(ada.key, route('postInteraction')(owned))).toMatchObject({ status: 200 });
    expect(await call(ada.key, route('uploadMedia')(owned))).toMatchObject({ status: 200 });
    for (const request of Object.values(IN_CHANNELS)) {
      expect(await shown(eve.key, request, owned)).toEqual(await shown(eve.key, request, nowhere));
    }
    expect(await call(ada.key, { method: 'GET', url: '/api/v1/users' })).toMatchObject({ status: 403 });
    const rotated = await call(api.rootKey, { method: 'POST', url: `/api/v1/keys/${eve.id}/rotate` });
    expect(await call(rotated.json.key, route('getChannel')(owned))).toMatchObject({ status: 404 });
    expect(await key({ ...user('ada'), scopes: ['read', 'admin'] })).toMatchObject({ status: 422 });
    const whole = (await key({ ...user('eve'), scopes: ['read', 'admin'], access: 'organization' })).json;
    expect(await call(whole.key, route('getChannel')(owned))).toMatchObject({ status: 200 });
    const ofService = await key({ principal: { type: 'service', id: 's' }, scopes: ['read'] });
    expect(ofService.json.access).toBe('organization');
    const service = { principal: { type: 'service', id: 's' }, access: 'participation', scopes: ['read'] };
    expect(await key(service)).toMatchObject({ status: 422 });
  });

  it('that were removed are told nothing, also not by a stored reply, in this process and in another one', async () => {
    const ids = await channelOf('ada', 'bob');
    const headers = { 'idempotency-key': 'once' };
    const post = route('postInteraction');
    const first = await call(tokens.bob, post(ids), headers);
    expect(first.status).toBe(200);
    const elsewhere = await api.startInstance();
    try {
      expect(await elsewhere.call({ ...route('getChannel')(ids), key: tokens.bob })).toMatchObject({ status: 200 });
      const remove = route('removeChannelParticipant');
      expect(await call(api.rootKey, remove({ ...ids, participant: bobsRecord }))).toMatchObject({ status: 200 });
      for (const request of Object.values(IN_CHANNELS)) {
        expect(await shown(tokens.bob, request, ids)).toEqual(await shown(tokens.bob, request, nowhere));
      }
      expect(await call(tokens.bob, post(ids), headers)).toMatchObject({ status: 404 });
      const there = () => elsewhere.call({ ...route('getChannel')(ids), key: tokens.bob });
      await expect.poll(async () => (await there()).status, { timeout: 5_000 }).toBe(404);
      const list = await call(tokens.bob, { method: 'GET', url: '/api/v1/channels?size=100' });
      expect(list.bytes).not.toContain(ids.channel);
      const rejoin = { type: 'authenticated_user', user_id: userId('bob') };
      await call(api.rootKey, { method: 'POST', url: `/api/v1/channels/${ids.channel}/participants`, body: rejoin });
      expect(await there()).toMatchObject({ status: 200 });
      expect(await call(tokens.bob, post(ids), headers)).toMatchObject({ status: 200, json: { id: first.json.id } });
    } finally {
      await elsewhere.stop();
    }
  });
});
