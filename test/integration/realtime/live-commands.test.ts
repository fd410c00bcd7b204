import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';

import type { LiveCommand, LiveCommandOutcome } from '#libs/features/realtime/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { ReadModel } from '#libs/platform/readmodel/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { subscribeToTopic } from '#test/support/realtime/live-topic.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import type { TestRedis } from '#test/support/redis.ts';
import type { ChannelGrant } from '#libs/platform/live/index.ts';

let api: TestApi<TestRedis>;
/** Of two processes with sockets. */
let nodes: readonly [Features, Features];
let second: Platform['redis'];
let grant: ChannelGrant;

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
  const { platform, redis } = api.stores;
  second = connectRedis(redis.url);
  await waitForRedis(second, 60_000);
  nodes = [
    composeFeatures(platform),
    composeFeatures({ ...platform, redis: second, readModel: new ReadModel(second) }),
  ];
  const [rootKey] = (await call('GET', '/api/v1/keys')).json.items;
  grant = {
    organizationId: api.organizationId,
    channelId: '',
    principalType: 'user',
    principalId: api.userId,
    keyId: rootKey.id,
    scopes: ['read', 'write', 'impersonate'],
    takesPart: false,
    isMember: false,
    expiresAtMs: null,
  };
});
afterAll(async () => {
  second.close();
  await api.stop();
});

function call(method: Call['method'], url: string, body?: object): Promise<Answer> {
  return api.call({ method, url, key: api.rootKey, ...(body && { body }) });
}
async function newChannel(): Promise<ChannelGrant> {
  return { ...grant, channelId: (await call('POST', '/api/v1/channels', { name: 'A channel' })).json.id };
}
const list = async ({ channelId }: ChannelGrant): Promise<Answer['json'][]> =>
  (await call('GET', `/api/v1/channels/${channelId}/interactions?order=asc&include_incomplete=true`)).json.items;
const run = (
  own: ChannelGrant,
  command: Partial<LiveCommand>,
  { node = 0, session = 'session' }: { node?: 0 | 1; session?: string } = {},
): Promise<LiveCommandOutcome> =>
  nodes[node].realtime.commands.run(
    own,
    { id: '1', type: 'interaction.post', data: undefined, ...command },
    { id: session },
  );
const valuesOf = async ({ organizationId, channelId }: ChannelGrant) => {
  const sources = nodes[1].realtime.values;
  return (await Promise.all(sources.map((one) => one.current(organizationId, channelId)))).flat();
};
const said = (text: string): object => ({ content: [{ type: 'text', text }] });

describe('interaction.post', () => {
  it('posts like the route, and returns the sequence', async () => {
    const own = await newChannel();
    const outcome = await run(own, { data: said('hello') });
    const [posted, ...others] = await list(own);
    expect(others).toEqual([]);
    expect(outcome).toEqual({ ok: true, seq: posted.sequence });
    expect(posted).toMatchObject({
      channel_id: own.channelId,
      participant: { type: 'authenticated_user', user_id: api.userId },
      content: [{ type: 'text', text: 'hello' }],
      content_role: 'user_message',
      complete: true,
      sequence: 2,
    });
  });

  it.each([
    ['no data', undefined],
    ['no content', {}],
    ['content of no kind', { content: [{ type: 'nonsense' }] }],
    ['a parent that is not there', { content: [], parent_span_id: 'nowhere' }],
    ['a user that is not there', { content: [], participant: { type: 'authenticated_user', user_id: 'nobody' } }],
    ['an update of a tool call that is not alone', { content: [], content_role: 'tool_call_update' }],
  ])('refuses %s in the words of the route', async (_what, data) => {
    const own = await newChannel();
    const answer = await call('POST', `/api/v1/channels/${own.channelId}/interactions`, data);
    const refused = await run(own, { data });
    expect(answer.status).toBe(422);
    // The route stores null for missing members.
    const detail = data === undefined ? [{ ...answer.json.detail[0] }] : answer.json.detail;
    expect(refused).toMatchObject({ ok: false, code: 'invalid' });
    const faults = refused.ok ? [] : refused.detail;
    expect(Array.isArray(faults) ? faults.map(({ type, loc, msg }) => ({ type, loc, msg })) : faults).toEqual(
      detail.map(({ type, loc, msg }: Answer['json']) => ({ type, loc, msg })),
    );
    expect(await list(own)).toEqual([]);
  });

  it('is refused in an archived channel, and in an unknown one', async () => {
    const own = await newChannel();
    await call('POST', `/api/v1/channels/${own.channelId}/archive`);
    expect(await run(own, { data: said('x') })).toEqual({
      ok: false,
      code: 'archived',
      detail: 'The channel is archived',
    });
    expect(await run({ ...own, channelId: newId() }, { data: said('x') })).toEqual({
      ok: false,
      code: 'not_found',
      detail: 'Not Found',
    });
  });

  it('appends no event for an update of a tool call, and returns null', async () => {
    const own = await newChannel();
    const item = { type: 'tool_call_update', tool_name: 't', tool_call_id: 'c', sequence: 1, update: { text: 'x' } };
    const data = { content_role: 'tool_call_update', content: [item] };
    expect(await run(own, { data })).toEqual({ ok: true, seq: null });
    expect(await list(own)).toEqual([]);
  });
});

describe('a command', () => {
  it('whose id is a UUID runs once, over all sessions of its principal, in all processes', async () => {
    const own = await newChannel();
    const command = { id: newId(), data: said('once') };
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, n) => run(own, command, { node: n % 2 === 0 ? 0 : 1, session: `s${n % 4}` })),
    );
    expect(new Set(outcomes.map((outcome) => JSON.stringify(outcome)))).toEqual(new Set(['{"ok":true,"seq":2}']));
    await run(own, { id: newId(), data: said('another') });
    expect(await run(own, { ...command, id: command.id.toUpperCase() }, { node: 1, session: 'later' })).toEqual({
      ok: true,
      seq: 2,
    });
    expect((await list(own)).map(({ content }) => content[0].text)).toEqual(['once', 'another']);
  });

  it('whose id was used for another command is refused', async () => {
    const own = await newChannel();
    const id = newId();
    await run(own, { id, data: said('one') });
    expect(await run(own, { id, data: said('two') })).toEqual({
      ok: false,
      code: 'command_id_used',
      detail: 'The id was used with another command',
    });
    expect(await list(own)).toHaveLength(1);
  });

  it('with the same id of another principal, or in another channel, is another command', async () => {
    const [own, elsewhere] = [await newChannel(), await newChannel()];
    const service: ChannelGrant = { ...own, principalType: 'service', principalId: 'robot' };
    const command = { id: newId(), data: said('x') };
    for (const who of [own, service, elsewhere]) expect(await run(who, command)).toMatchObject({ ok: true });
    expect(await list(own)).toHaveLength(2);
    expect(await list(elsewhere)).toHaveLength(1);
  });

  it('whose id is no UUID is identified within its session', async () => {
    const own = await newChannel();
    const command = { id: '1', data: said('x') };
    const twice = [await run(own, command), await run(own, command)];
    expect(twice).toEqual([
      { ok: true, seq: 2 },
      { ok: true, seq: 2 },
    ]);
    const atOnce = { id: '2', data: said('y') };
    await Promise.all([run(own, atOnce), run(own, atOnce)]);
    expect(await list(own)).toHaveLength(2);
    await run(own, command, { session: 'another' });
    await run(own, { id: '1', data: said('something else') });
    expect(await list(own)).toHaveLength(4);
  });

  it('that was refused may be sent again when it is possible', async () => {
    const own = await newChannel();
    const command = { id: newId(), data: { content: [], parent_span_id: 'later' } };
    expect(await run(own, command)).toMatchObject({ ok: false, code: 'invalid' });
    await run(own, { id: newId(), data: { content: [], span_id: 'later' } });
    expect(await run(own, command, { node: 1 })).toEqual({ ok: true, seq: 3 });
  });

  it('is refused once the key of its socket is revoked, before the socket is closed', async () => {
    const principal = { type: 'service', id: 'robot' };
    const { id: keyId } = (await call('POST', '/api/v1/keys', { name: 'k', scopes: ['write'], principal })).json;
    const own = { ...(await newChannel()), keyId, principalType: 'service' as const, principalId: 'robot' };
    const typing = { type: 'typing', data: { typing: true } };
    expect(await run(own, typing)).toMatchObject({ ok: true });
    await call('POST', `/api/v1/keys/${keyId}/revoke`);
    await eventually(async () => {
      expect(await run(own, typing)).toMatchObject({ ok: false, code: 'not_authenticated' });
    });
  });

  it('needs the scope write', async () => {
    const own = await newChannel();
    const refused = { ok: false, code: 'forbidden', detail: 'The ticket, token or API key lacks the scope write' };
    for (const type of ['interaction.post', 'typing', 'reaction.add']) {
      expect(await run({ ...own, scopes: ['read', 'admin'] }, { type, data: said('x') })).toEqual(refused);
    }
    expect(await list(own)).toEqual([]);
  });

  it('of an unknown type is refused with the known types', async () => {
    const own = await newChannel();
    const known = 'interaction.post, reaction.add, reaction.remove, run.cancel, typing';
    for (const type of ['interaction.delete', 'constructor', '']) {
      expect(await run(own, { type })).toEqual({
        ok: false,
        code: 'unknown_command',
        detail: `There is no command of this type; there are: ${known}`,
      });
    }
  });
});

describe('reactions', () => {
  it('are added and removed like by the routes', async () => {
    const own = await newChannel();
    await run(own, { data: said('x') });
    const [{ id }] = await list(own);
    const data = { interaction_id: id, emoji: '👍' };
    expect(await run(own, { id: '2', type: 'reaction.add', data })).toEqual({ ok: true, seq: 3 });
    const agent = { ...data, agent_id: 'agent-1', agent_name: 'Robin' };
    expect(await run(own, { id: '3', type: 'reaction.add', data: agent })).toEqual({ ok: true, seq: 4 });
    expect((await list(own))[0].reactions).toMatchObject([
      { emoji: '👍', count: 2, reacted_by_me: true, reacted_by_agent: true },
    ]);
    expect(await run(own, { id: '4', type: 'reaction.remove', data })).toEqual({ ok: true, seq: 5 });
    expect((await list(own))[0].reactions).toMatchObject([{ emoji: '👍', count: 1, reacted_by_me: false }]);
  });

  it('are refused for an interaction of another channel, an invalid emoji, and a service without an agent', async () => {
    const [own, elsewhere] = [await newChannel(), await newChannel()];
    await run(elsewhere, { data: said('x') });
    const [{ id }] = await list(elsewhere);
    const add = (data: object, who = own): Promise<LiveCommandOutcome> => run(who, { type: 'reaction.add', data });
    expect(await add({ interaction_id: id, emoji: '👍' })).toEqual({
      ok: false,
      code: 'not_found',
      detail: 'Not Found',
    });
    expect(await add({ interaction_id: 'x', emoji: '👍' })).toMatchObject({ code: 'not_found' });
    expect(await add({ emoji: '👍👍' })).toMatchObject({
      code: 'invalid',
      detail: [
        { type: 'missing', loc: ['body', 'interaction_id'] },
        { type: 'value_error', loc: ['body', 'emoji'] },
      ],
    });
    const service: ChannelGrant = { ...elsewhere, principalType: 'service', principalId: 'robot' };
    expect(await add({ interaction_id: id, emoji: '👍' }, service)).toMatchObject({
      code: 'invalid',
      detail: [{ loc: ['body', 'agent_id'], msg: 'Value error, a service reacts for an agent only' }],
    });
  });
});

describe('typing', () => {
  it('is published, and stored for ten seconds', async () => {
    const own = await newChannel();
    const topic = await subscribeToTopic(api.stores.platform, own.organizationId, own.channelId);
    expect(await run(own, { type: 'typing' })).toEqual({ ok: true, seq: null });
    expect(await run(own, { type: 'typing', data: { agent_id: 'agent-1' } })).toEqual({ ok: true, seq: null });
    expect((await valuesOf(own)).map(({ key }) => key)).toEqual([`typing:${api.userId}`, 'typing:agent-1']);
    expect(await run(own, { type: 'typing', data: { typing: false } })).toEqual({ ok: true, seq: null });
    expect((await valuesOf(own)).map(({ key }) => key)).toEqual(['typing:agent-1']);

    const me = { type: 'user', id: api.userId };
    expect(await topic.take()).toEqual(
      [
        { key: `typing:${api.userId}`, data: { ...me, typing: true }, ttl_ms: 10_000 },
        { key: 'typing:agent-1', data: { type: 'agent', id: 'agent-1', typing: true }, ttl_ms: 10_000 },
        { key: `typing:${api.userId}`, data: { ...me, typing: false }, ttl_ms: 0 },
      ].map((frame) => ({
        flags: 4,
        key: frame.key,
        frame: { frame: 'ephemeral', n: expect.any(Number), ...frame },
      })),
    );
    expect(await run(own, { type: 'typing', data: { typing: 'yes' } })).toMatchObject({
      code: 'invalid',
      detail: [{ type: 'bool_type', loc: ['body', 'typing'] }],
    });
    topic.stop();
  });

  it.each<[string, object, object | undefined]>([
    ['by the route', said('x'), undefined],
    ['that is incomplete', { content: [], complete: false }, undefined],
    ['that names the user', { ...said('x'), participant: { type: 'authenticated_user', user_id: 'ME' } }, undefined],
    ['of an agent', { ...said('x'), participant: { type: 'agent', agent_id: 'agent-1' } }, { agent_id: 'agent-1' }],
  ])('of the sender ends with a post %s', async (_what, post, data) => {
    const own = await newChannel();
    const topic = await subscribeToTopic(api.stores.platform, own.organizationId, own.channelId);
    await run(own, { type: 'typing', data });
    await run(own, { id: '2', type: 'typing', data: { agent_id: 'another' } });
    const text = JSON.stringify(post).replace('ME', api.userId.toUpperCase());
    const posted = await call('POST', `/api/v1/channels/${own.channelId}/interactions`, JSON.parse(text));
    expect(posted.status).toBe(200);
    const id = Object(data).agent_id ?? api.userId;
    const ended = { key: `typing:${id}`, data: { id, typing: false }, ttl_ms: 0 };
    const taken: unknown[] = [];
    await eventually(async () => {
      taken.push(...(await topic.take()).map(({ frame }) => frame));
      expect(taken).toHaveLength(3);
    });
    expect(taken[2]).toMatchObject(ended);
    expect((await valuesOf(own)).map(({ key }) => key)).toEqual(['typing:another']);
    topic.stop();
  });

  it('of the sender ends with a post by a socket, once, and with no update of a tool call', async () => {
    const own = await newChannel();
    const topic = await subscribeToTopic(api.stores.platform, own.organizationId, own.channelId);
    const item = { type: 'tool_call_update', tool_name: 't', tool_call_id: 'c', sequence: 1, update: { text: 'x' } };
    await run(own, { type: 'typing' });
    await run(own, { id: '2', data: { content_role: 'tool_call_update', content: [item] } });
    expect((await valuesOf(own)).map(({ key }) => key)).toEqual(['tool_call:c', `typing:${api.userId}`]);
    // Another process than the one that the sender types to.
    for (const id of ['3', '4']) await run(own, { id, data: said('x') }, { node: 1 });
    await run(own, { id: '5', type: 'typing', data: { agent_id: 'last' } }, { node: 1 });
    expect((await topic.take()).map(({ key, frame }) => [key, frame.data.typing])).toEqual([
      [`typing:${api.userId}`, true],
      ['tool_call:c', undefined],
      [`typing:${api.userId}`, false],
      ['typing:last', true],
    ]);
    topic.stop();
  });

  it('is followed for as many writers of a channel as are shown', async () => {
    const own = await newChannel();
    for (let n = 0; n <= 64; n++) await run(own, { type: 'typing', data: { agent_id: `agent-${n}` } });
    const calls = vi.spyOn(api.stores.platform.redis, 'call');
    for (const id of ['agent-0', 'agent-64']) {
      const post = { ...said('x'), participant: { type: 'agent', agent_id: id } };
      await call('POST', `/api/v1/channels/${own.channelId}/interactions`, post);
    }
    await eventually(async () => expect((await valuesOf(own)).map(({ key }) => key)).not.toContain('typing:agent-64'));
    const ended = calls.mock.calls.flatMap(([some]) => some.filter(({ name }) => name === 'parley_ephemeral_end_v2'));
    calls.mockRestore();
    expect(ended.map(({ args }) => args[0])).toEqual(['agent-64']);
  });
});

describe('while Redis is unavailable', () => {
  it('commands run, and run once although they are repeated meanwhile and afterwards', async () => {
    const own = await newChannel();
    const command = { id: newId(), data: said('in the end') };
    await api.stores.redis.kill9();
    for (let times = 0; times < 2; times++) expect(await run(own, command)).toEqual({ ok: true, seq: 2 });
    await api.stores.redis.restart();
    await eventually(async () => expect(await run(own, command, { node: 1 })).toEqual({ ok: true, seq: 2 }));
    await eventually(async () => expect(await run(own, command)).toEqual({ ok: true, seq: 2 }));
    // Lists answer 503 until what was appended meanwhile has been applied.
    await eventually(async () => expect(await list(own)).toHaveLength(1));
  });
});
