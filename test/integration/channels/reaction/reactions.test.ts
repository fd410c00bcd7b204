import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { MAX_MARKS, MAX_WITHDRAWN } from '#libs/features/channels/reaction/reaction.ts';
import { channelKeys } from '#libs/features/channels/channel.keys.ts';
import { encodeWithdrawn } from '#libs/features/channels/reaction/reaction.marks.ts';
import { composeReadModels } from '#services/features.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { eventually } from '#test/support/eventually.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';
import { nodeWith } from '#test/support/redis-commands.ts';

let api: TestApi;
let ada: string;
let bob: string;
let service: string;
let foreign: string;
let adaId: string;
let channelId: string;

beforeAll(async () => {
  api = await startTestApi();
  [ada, adaId] = await userWithKey('Ada');
  [bob] = await userWithKey('Bob');
  service = (await send(api.rootKey, 'POST', '/api/v1/keys', serviceKey('bridge'))).json.key;
  const other = await send(api.rootKey, 'POST', '/api/v1/organizations', { name: 'Other' });
  [foreign] = await userWithKey('Eve', other.json.id);
  channelId = (await send(ada, 'POST', '/api/v1/channels', { name: 'lab' })).json.id;
});
afterAll(() => api.stop());

const serviceKey = (id: string) => ({ name: id, scopes: ['read', 'write'], principal: { type: 'service', id } });

async function userWithKey(name: string, organization_id?: string): Promise<[key: string, id: string]> {
  const inOrganization = organization_id === undefined ? {} : { organization_id };
  const user = await send(api.rootKey, 'POST', '/api/v1/users', { display_name: name, ...inOrganization });
  const principal = { type: 'user', id: user.json.id };
  const key = { name, scopes: ['read', 'write', 'impersonate'], access: 'organization', principal, ...inOrganization };
  return [(await send(api.rootKey, 'POST', '/api/v1/keys', key)).json.key, user.json.id];
}

function send(key: string, method: Call['method'], url: string, body?: object): Promise<Answer> {
  return api.call({ method, url, key, ...(body !== undefined && { body }) });
}

async function post(key = ada, rest: object = {}): Promise<string> {
  const body = { content: [{ type: 'text', text: 'hello' }], ...rest };
  const answer = await send(key, 'POST', `/api/v1/channels/${channelId}/interactions`, body);
  expect(answer.status).toBe(200);
  return answer.json.id;
}

const pathOf = (id: string, emoji: string) => `/api/v1/interactions/${id}/reactions/${encodeURIComponent(emoji)}`;
/** Retried when a busy machine made a store late: 503 means that this is safe. */
const settled = (request: () => Promise<Answer>): Promise<Answer> =>
  eventually(async () => {
    const answer = await request();
    expect(answer.status).not.toBe(503);
    return answer;
  });
const react = (key: string, id: string, emoji: string, body?: object) => send(key, 'PUT', pathOf(id, emoji), body);
const withdraw = (key: string, id: string, emoji: string, query = '') =>
  send(key, 'DELETE', `${pathOf(id, emoji)}${query}`);
const read = async (key: string, id: string, query = '') =>
  (await send(key, 'GET', `/api/v1/interactions/${id}${query}`)).json;
const list = async (key: string, query = '') =>
  (await send(key, 'GET', `/api/v1/channels/${channelId}/interactions?order=asc&size=100${query}`)).json.items;

describe('reactions', () => {
  it('are shown in lists with their reactors, in order, for those who ask', async () => {
    const id = await post();
    for (const [key, emoji] of [
      [bob, '🎉'],
      [ada, '👍'],
      [bob, '👍'],
    ] as const) {
      expect((await send(key, 'PUT', pathOf(id, emoji))).status).toBe(200);
    }
    const list = `/api/v1/channels/${channelId}/interactions?size=1`;
    const plain = (await send(ada, 'GET', list)).json;
    const named = (await send(ada, 'GET', `${list}&include_reactors=true`)).json;
    const user = (id: unknown, name: string, before: number) => ({
      type: 'user',
      id,
      name,
      sequence: plain.meta.sequence - before,
    });
    const bobId = named.items[0].reactions[0].reactors[0].id;
    expect(named.items[0].reactions).toEqual([
      { ...plain.items[0].reactions[0], emoji: '🎉', reactors: [user(bobId, 'Bob', 2)] },
      { ...plain.items[0].reactions[1], emoji: '👍', reactors: [user(adaId, 'Ada', 1), user(bobId, 'Bob', 0)] },
    ]);
    // Pages are kept by what they show.
    expect((await send(ada, 'GET', list)).json).toEqual(plain);
    expect(plain.items[0].reactions[0]).not.toHaveProperty('reactors');
  });

  it('have the shape of the contract, for every reader', async () => {
    const id = await post();
    await react(service, id, '👍', { agent_id: 'agent-1', agent_name: 'Otto' });
    await react(bob, id, '👍');
    const answer = await react(ada, id, '👍');
    expect(answer.status).toBe(200);
    const summary = {
      interaction_id: id,
      emoji: '👍',
      count: 3,
      reacted_by_me: true,
      target_role: 'user',
      reacted_by_agent: true,
      reactor_names: ['Bob', 'Otto'],
      target_sender_id: adaId,
    };
    expect(answer.json.reactions).toEqual([summary]);
    expect(await read(ada, id)).toEqual(answer.json);
    expect((await read(bob, id)).reactions).toEqual([{ ...summary, reactor_names: ['Ada', 'Otto'] }]);
    expect((await read(service, id)).reactions).toEqual([
      { ...summary, reacted_by_me: false, reactor_names: ['Bob', 'Ada', 'Otto'] },
    ]);
  });

  it('are ordered by emoji, then by the time of the reaction, agents after users, without nameless ones', async () => {
    const id = await post(service, { participant: { type: 'agent', agent_id: 'agent-9' } });
    await react(service, id, '🎉', { agent_id: 'nameless' });
    await react(service, id, '🎉', { agent_id: 'agent-2', agent_name: 'Zoe' });
    await react(service, id, '🎉', { agent_id: 'agent-1', agent_name: 'Abe' });
    await react(bob, id, '👀');
    await react(bob, id, '🎉');
    await react(ada, id, '🎉');
    const { reactions } = await read(service, id);
    expect(reactions).toMatchObject([
      { emoji: '🎉', count: 5, reactor_names: ['Bob', 'Ada', 'Zoe', 'Abe'], reacted_by_agent: true },
      { emoji: '👀', count: 1, reactor_names: ['Bob'], reacted_by_agent: false },
    ]);
    expect(reactions[0]).toMatchObject({ target_role: 'assistant', target_sender_id: 'agent-9' });
  });

  it('can be taken back, and repeated commands leave no events', async () => {
    const id = await post();
    const first = await react(bob, id, '👍');
    const again = await react(bob, id, '👍');
    expect(again.bytes).toBe(first.bytes);
    expect(again.headers['parley-position']).toBe(first.headers['parley-position']);
    await react(service, id, '👍', { agent_id: 'agent-1' });
    const gone = await withdraw(bob, id, '👍');
    expect(gone.json.reactions).toMatchObject([{ count: 1, reacted_by_agent: true, reactor_names: [] }]);
    const goneAgain = await withdraw(bob, id, '👍');
    expect(goneAgain.headers['parley-position']).toBe(gone.headers['parley-position']);
    expect((await withdraw(service, id, '👍', '?agent_id=agent-1')).json.reactions).toBeNull();
    expect((await react(bob, id, '👍')).json.reactions).toMatchObject([{ count: 1, reacted_by_me: true }]);
  });

  it('of an agent that takes part carry its name at that time', async () => {
    const { id: agent_id } = (await send(ada, 'POST', '/api/v1/agents', { name: 'Seven' })).json;
    const participant = { type: 'agent', id: agent_id };
    const joined = await send(ada, 'POST', `/api/v1/channels/${channelId}/participants`, participant);
    expect(joined.status).toBe(200);
    const id = await post();
    const answer = await react(service, id, '👍', { agent_id });
    expect(answer.json.reactions[0].reactor_names).toEqual(['Seven']);
  });

  it.each(['👩🏻‍❤️‍💋‍👩🏿', '👍🏽', '🇩🇪', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '❤️', '#️⃣'])('may be %s', async (emoji) => {
    const id = await post();
    const answer = await react(bob, id, emoji);
    expect(answer.json.reactions).toMatchObject([{ emoji, count: 1 }]);
    expect((await withdraw(bob, id, emoji)).json.reactions).toBeNull();
  });

  it.each([
    ['❤️', ['\u2764', '\u2764\uFE0F', '\u2764\uFE0E']],
    ['👍', ['\u{1F44D}', '\u{1F44D}\uFE0F']],
    ['1️⃣', ['1\uFE0F\u20E3', '1\u20E3']],
    ['🏳️‍🌈', ['\u{1F3F3}\uFE0F\u200D\u{1F308}', '\u{1F3F3}\u200D\u{1F308}']],
    ['👁️‍🗨️', ['\u{1F441}\u200D\u{1F5E8}', '\u{1F441}\uFE0F\u200D\u{1F5E8}', '\u{1F441}\u200D\u{1F5E8}\uFE0F']],
    ['☝🏽', ['\u261D\u{1F3FD}', '\u261D\uFE0F\u{1F3FD}']],
    ['⛹🏽‍♂️', ['\u26F9\u{1F3FD}\u200D\u2642', '\u26F9\uFE0F\u{1F3FD}\u200D\u2642\uFE0F']],
    ['🏴‍☠️', ['\u{1F3F4}\u200D\u2620', '\u{1F3F4}\u200D\u2620\uFE0F']],
    ['🇩🇪', ['\u{1F1E9}\u{1F1EA}', '\u{1F1E9}\u{1F1EA}\uFE0F']],
  ])('%s is one reaction in all the forms that keyboards send', async (emoji, forms) => {
    const id = await post();
    for (const form of forms) {
      expect((await react(bob, id, form)).json.reactions).toMatchObject([{ emoji, count: 1 }]);
      expect((await react(ada, id, form)).json.reactions).toMatchObject([{ emoji, count: 2 }]);
      for (const key of [ada, bob]) await withdraw(key, id, forms[0] ?? '');
    }
    expect((await react(bob, id, forms[0] ?? '')).json.reactions).toHaveLength(1);
  });

  it.each(['👍👍', '\u2764\u2764', '\uFE0F', '1\uFE0F', '🇽🇽', 'a', 'lol', '1', '👍a', ' '])(
    'may not be %j',
    async (emoji) => {
      const id = await post();
      for (const answer of [await react(bob, id, emoji), await withdraw(bob, id, emoji)]) {
        expect(answer.status).toBe(422);
        expect(answer.json.detail[0].loc).toEqual(['path', 'emoji']);
      }
    },
  );

  it('of a service need an agent', async () => {
    const id = await post();
    expect((await react(service, id, '👍')).json.detail[0].loc).toEqual(['body', 'agent_id']);
    expect((await withdraw(service, id, '👍')).json.detail[0].loc).toEqual(['query', 'agent_id']);
  });

  it('are in lists and below other interactions, too', async () => {
    const span_id = `root-${Date.now()}`;
    const root = await post(ada, { span_id });
    const answerId = await post(service, { participant: { type: 'agent', agent_id: 'a' }, parent_span_id: span_id });
    await react(bob, answerId, '🔥');
    const nested = await read(bob, root, '?include_nested_interactions=true');
    expect(nested.reactions).toBeNull();
    expect(nested.nested_interactions[0]).toMatchObject({ id: answerId, reactions: [{ reacted_by_me: true }] });
    for (const query of ['', '&content_role=agent_response']) {
      const listed = (await list(ada, query)).find(({ id }: { id: string }) => id === answerId);
      expect(listed).toEqual(await read(ada, answerId));
      expect(listed.reactions).toMatchObject([{ reacted_by_me: false, reactor_names: ['Bob'] }]);
    }
  });

  it('stay when an interaction is completed', async () => {
    const id = await post(service, { participant: { type: 'agent', agent_id: 'a' }, complete: false });
    expect((await react(bob, id, '👍')).json.complete).toBe(false);
    const completed = await send(bob, 'POST', `/api/v1/interactions/${id}/complete`, {});
    expect(completed.json).toMatchObject({ complete: true, reactions: [{ emoji: '👍', reacted_by_me: true }] });
    expect(await read(bob, id)).toEqual(completed.json);
  });
});

describe('read receipts', () => {
  const receipt = (id: string, agent_id: unknown) =>
    send(service, 'POST', `/api/v1/interactions/${id}/read_receipts`, { agent_id } as object);

  it('are recorded once for each agent', async () => {
    const id = await post();
    const { interaction_id } = await read(ada, id);
    const first = await receipt(id, 'agent-1');
    expect(first.json.agent_read_receipts).toEqual([
      {
        id: expect.any(String),
        message_event_id: id,
        interaction_id,
        agent_id: 'agent-1',
        read_at: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      },
    ]);
    expect((await receipt(id, 'agent-1')).bytes).toBe(first.bytes);
    const second = await receipt(id, 'agent-0');
    expect(second.json.agent_read_receipts.map((one: { agent_id: string }) => one.agent_id)).toEqual([
      'agent-1',
      'agent-0',
    ]);
    expect(await read(ada, id)).toEqual(second.json);
    expect(second.json.reactions).toBeNull();
  });

  it('are for messages of users, and need an agent', async () => {
    const id = await post(service, { participant: { type: 'agent', agent_id: 'agent-1' } });
    expect((await receipt(id, 'agent-1')).status).toBe(409);
    expect((await receipt(id, undefined)).status).toBe(422);
  });
});

describe('the mention-invite prompt', () => {
  const dismiss = (key: string, id: string) =>
    send(key, 'POST', `/api/v1/interactions/${id}/mention_invite_prompt/dismiss`);

  it('is dismissed by the sender, for the sender', async () => {
    const [one, other] = [await post(), await post()];
    const first = await dismiss(ada, one);
    expect(first.json.mention_invite_prompt_dismissed).toBe(true);
    expect((await dismiss(ada, one)).headers['parley-position']).toBe(first.headers['parley-position']);
    expect((await dismiss(ada, other)).json.mention_invite_prompt_dismissed).toBe(true);
    for (const id of [one, other]) {
      expect((await read(ada, id)).mention_invite_prompt_dismissed).toBe(true);
      for (const key of [bob, service]) expect((await read(key, id)).mention_invite_prompt_dismissed).toBe(false);
    }
  });

  it('cannot be dismissed by another user', async () => {
    const id = await post();
    for (const key of [bob, service]) expect((await dismiss(key, id)).status).toBe(403);
    expect((await read(ada, id)).mention_invite_prompt_dismissed).toBe(false);
  });
});

describe('a missing interaction', () => {
  it("is answered byte for byte as another organization's", async () => {
    const id = await post();
    const { id: unused } = await read(ada, id);
    const missing = unused.replace(/.{8}$/, 'AAAAADAA');
    const calls: [Call['method'], (at: string) => string, object?][] = [
      ['PUT', (at) => pathOf(at, '👍')],
      ['DELETE', (at) => pathOf(at, '👍')],
      ['POST', (at) => `/api/v1/interactions/${at}/read_receipts`, { agent_id: 'agent-1' }],
      ['POST', (at) => `/api/v1/interactions/${at}/mention_invite_prompt/dismiss`],
    ];
    for (const [method, path, body] of calls) {
      const answers = [
        await send(foreign, method, path(id), body),
        await send(ada, method, path(missing), body),
        await send(ada, method, path('no-such-thing'), body),
      ];
      expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
      expect(new Set(answers.map(({ bytes }) => bytes)).size).toBe(1);
    }
    expect((await read(ada, id)).reactions).toBeNull();
  });
});

describe('an interaction', () => {
  it('takes a thousand reactions and receipts, and refuses further concurrent ones', async () => {
    const id = await post();
    for (let from = 0; from < MAX_MARKS - 20; from += 70) {
      const some = await Promise.all(
        Array.from({ length: 70 }, (_, n) =>
          settled(() => react(service, id, '👍', { agent_id: `agent-${from + n}` })),
        ),
      );
      expect(some.map(({ status }) => status)).toEqual(some.map(() => 200));
    }
    const rest = await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        settled(() =>
          n % 2 === 0
            ? react(service, id, '🎉', { agent_id: `agent-${n}` })
            : send(service, 'POST', `/api/v1/interactions/${id}/read_receipts`, { agent_id: `agent-${n}` }),
        ),
      ),
    );
    const refused = rest.filter(({ status }) => status !== 200);
    expect(refused.map(({ status, json }) => [status, json.code])).toEqual(
      refused.map(() => [409, 'too_many_reactions']),
    );
    expect(rest.length - refused.length).toBe(20);
    const shown = await read(ada, id);
    const reactors = shown.reactions.reduce((sum: number, { count }: { count: number }) => sum + count, 0);
    expect(reactors + shown.agent_read_receipts.length).toBe(MAX_MARKS);
    // An existing reaction does not count again, another interaction has its own limit, and removal makes room.
    expect((await react(service, id, '👍', { agent_id: 'agent-1' })).status).toBe(200);
    expect((await react(ada, await post(), '👍')).status).toBe(200);
    expect((await withdraw(service, id, '👍', '?agent_id=agent-1')).status).toBe(200);
    expect((await react(ada, id, '👍')).status).toBe(200);
    expect((await react(bob, id, '👍')).json.code).toBe('too_many_reactions');
  }, 60_000);

  it('takes no more reactions after ten thousand were taken back', async () => {
    const id = await post();
    const { sequence } = await read(ada, id);
    const { withdrawnMarks: withdrawn } = channelKeys(api.organizationId, channelId);
    const members = Array.from({ length: MAX_WITHDRAWN - 1 }, (_, n) => {
      const reaction = { emoji: '👍', reactor: { type: 'agent', id: `agent-${n}`, name: null } } as const;
      const target = { role: 'user', senderId: null } as const;
      return encodeWithdrawn({ ...reaction, target }, { addedSequence: 1e6 + n, withdrawnSequence: 2e6 + n });
    });
    const { redis } = api.stores.platform;
    await nodeWith(redis, withdrawn).zadd(withdrawn, ...members.flatMap((member) => [sequence, member]));
    expect((await react(ada, id, '👍')).status).toBe(200);
    expect((await withdraw(ada, id, '👍')).status).toBe(200);
    const refused = await react(ada, id, '👍');
    expect([refused.status, refused.json.code]).toEqual([409, 'too_many_reactions']);
    expect((await react(ada, await post(), '👍')).status).toBe(200);
    await nodeWith(redis, withdrawn).zrem(withdrawn, ...members);
  });
});

describe('a rebuild', () => {
  it('gives the same read models, with all reactions', async () => {
    const before = await dumpReadModels(api.stores.platform.redis);
    const marks = Object.entries(before).filter(([key]) => key.endsWith(':marks'));
    expect(JSON.stringify(marks)).toMatch(/reaction.*receipt|receipt.*reaction/s);
    const shown = [await list(ada), await list(bob)];
    const models = composeReadModels(api.stores.platform);
    for (const maxBatch of [3, 500]) {
      const signal = AbortSignal.timeout(60_000);
      await rebuild({ feed: api.stores.platform.feed, ...models }, { maxBatch, signal });
      expect(await dumpReadModels(api.stores.platform.redis)).toEqual(before);
    }
    expect([await list(ada), await list(bob)]).toEqual(shown);
  });
});
