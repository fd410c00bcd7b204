/* Commands while Redis is away: those that docs/operations.md promises succeed, also with an `Idempotency-Key`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { startTestApi, type Answer, type Call, type TestApi, type TestInstance } from '#test/support/test-api.ts';

let api: TestApi<TestRedis>;
let other: TestInstance;
let userId: string;
let agentId: string;
let channelId: string;
let graphId: string;
let interactionId: string;

const send = (method: Call['method'], url: string, body?: object, idempotencyKey?: string): Promise<Answer> =>
  api.call({
    method,
    url: `/api/v1${url}`,
    key: api.rootKey,
    ...(body !== undefined && { body }),
    ...(idempotencyKey !== undefined && { headers: { 'idempotency-key': idempotencyKey } }),
  });

async function created(url: string, body: object): Promise<string> {
  const answer = await send('POST', url, body);
  expect(answer).toMatchObject({ status: 200 });
  return answer.json.id;
}

const message = { type: 'message', content: [{ type: 'text', role: 'user', text: 'hello' }] };

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
  userId = await created('/users', { display_name: 'Ada' });
  agentId = await created('/agents', { name: 'Helper' });
  graphId = await created('/knowledge', { name: 'Facts' });
  channelId = await created('/channels', { name: 'first', participants: [] });
  interactionId = await created(`/channels/${channelId}/interactions`, { ...message, complete: false });
  other = await api.startInstance();
  await api.stores.redis.kill9();
  await eventually(() => !api.stores.platform.redis.isReady);
});
afterAll(async () => {
  await other?.stop();
  await api.stop();
});

const COMMANDS: Record<string, () => [method: Call['method'], url: string, body?: object]> = {
  'create a channel': () => ['POST', '/channels', { name: 'n', participants: [] }],
  'create a channel with participants': () => [
    'POST',
    '/channels',
    {
      name: 'n',
      participants: [
        { type: 'authenticated_user', user_id: userId },
        { type: 'agent', id: agentId },
      ],
    },
  ],
  'create a thread': () => ['POST', '/channels', { name: 't', parent_channel_id: channelId }],
  'add a user': () => ['POST', `/channels/${channelId}/participants`, { type: 'authenticated_user', user_id: userId }],
  'add an agent': () => ['POST', `/channels/${channelId}/participants`, { type: 'agent', id: agentId }],
  'rename a channel': () => ['PATCH', `/channels/${channelId}`, { name: 'other' }],
  post: () => ['POST', `/channels/${channelId}/interactions`, message],
  'create an agent': () => ['POST', '/agents', { name: 'A' }],
  'create an agent with a graph': () => ['POST', '/agents', { name: 'A', knowledge_graph: graphId }],
  'change an agent': () => ['PATCH', `/agents/${agentId}`, { description: 'B' }],
  'create a user': () => ['POST', '/users', { display_name: 'Bob' }],
  'change a user': () => ['PATCH', `/users/${userId}`, { display_name: 'Eve' }],
  'create an organization': () => ['POST', '/organizations', { name: 'Other' }],
  'create a graph': () => ['POST', '/knowledge', { name: 'G' }],
  'create a report': () => ['POST', '/reports', { query: 'why?', knowledge_graph: graphId }],
  'create a crawl': () => ['POST', '/crawls', { url: 'https://example.com/', knowledge_graph: graphId }],
  'create a document': () => ['POST', '/documents', { name: 'd', text: 'text', knowledge_graph: graphId }],
  'create media': () => [
    'POST',
    '/media',
    { url: 'https://example.com/a.png', knowledge_graph: graphId, channel: channelId },
  ],
};

const CREATE_KEY = ['POST', '/keys', { name: 'k', scopes: ['read'], principal: { type: 'service', id: 's' } }] as const;

/** Of an answer: what a repeated request must get again, if no other command came in between. */
const outcome = ({ status, json, headers: { etag, 'parley-position': position } }: Answer) => ({
  status,
  json,
  etag,
  position,
});

describe('while Redis is away', () => {
  it.each(Object.entries(COMMANDS))('a request succeeds: %s', async (_name, of) => {
    expect(await send(...of())).toMatchObject({ status: 200 });
  });

  it.each(Object.entries(COMMANDS))('a request with an Idempotency-Key is carried out once: %s', async (name, of) => {
    const key = name.replaceAll(' ', '-');
    const first = await send(...of(), key);
    expect(first).toMatchObject({ status: 200 });
    expect(outcome(await send(...of(), key))).toEqual(outcome(first));
  });

  it('recognizes a repeated request behind the events of a busy channel, in a process that does not know the channel', async () => {
    const { id } = (await send('POST', '/channels', { name: 'busy', participants: [] })).json;
    const rename = ['PATCH', `/channels/${id}`, { name: 'mine' }] as const;
    expect((await send(...rename, 'busy')).status).toBe(200);
    for (let n = 0; n < 6; n++) {
      const posts = Array.from({ length: 200 }, () => send('POST', `/channels/${id}/interactions`, message));
      for (const { status } of await Promise.all(posts)) expect(status).toBe(200);
    }
    await send('PATCH', `/channels/${id}`, { name: 'theirs' });
    const headers = { 'idempotency-key': 'busy' };
    const again = await other.call({
      method: 'PATCH',
      url: `/api/v1${rename[1]}`,
      key: api.rootKey,
      body: rename[2],
      headers,
    });
    expect([again.status, again.json.name]).toEqual([200, 'theirs']);
  });

  it('answers 503 to the other commands that docs/operations.md names', async () => {
    const own = `/interactions/${interactionId}`;
    const answers = [
      await send('POST', `/channels/${channelId}/interactions`, { ...message, span_id: 'mine' }),
      await send('POST', `/channels/${channelId}/interactions`, { ...message, parent_span_id: 'mine' }),
      await send('POST', `${own}/complete`, {}),
      await send('PUT', `${own}/reactions/%F0%9F%91%8D`, {}),
      await send('POST', `/agents/${agentId}/prompt`, { prompt: 'why?' }),
      await send('POST', `/channels/${channelId}/websocket_ticket`),
    ];
    expect(answers.map(({ status, json }) => [status, json.code])).toEqual(
      answers.map(() => [503, 'store_unavailable']),
    );
  });

  it('refuses to make another secret with a key that it may have seen', async () => {
    expect(await send(...CREATE_KEY)).toMatchObject({ status: 200 });
    const refused = await send(...CREATE_KEY, 'secret');
    expect(refused).toMatchObject({ status: 503, json: { code: 'store_unavailable' } });
  });

  it('answers the same request again when Redis is back, and refuses another one with the same key', async () => {
    const first = await send('POST', '/users', { display_name: 'Once' }, 'later');
    expect(first.status).toBe(200);
    await api.stores.redis.restart();
    await eventually(async () => {
      const again = await send('POST', '/users', { display_name: 'Once' }, 'later');
      expect(outcome(again)).toEqual(outcome(first));
      expect(again.headers['idempotency-replayed']).toBe('true');
    });
    expect((await send('POST', '/users', { display_name: 'Twice' }, 'later')).status).toBe(422);
    await eventually(async () => expect((await send(...CREATE_KEY, 'secret')).status).toBe(200));
  });
});
