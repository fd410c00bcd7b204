/* How far users have read, on all their devices, and what they have not read. */
import { once } from 'node:events';

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';

import { ParleyClient, type ReadMarker } from '#libs/client/src/index.ts';
import { WebsocketAdmission } from '#libs/features/realtime/index.ts';
import { userIdOf } from '#libs/features/users/index.ts';
import { newId } from '#libs/kernel/ids.ts';
import { register, Signer } from '#test/support/member-tokens.ts';
import { eventually } from '#test/support/eventually.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi<TestRedis>;
let url: string;
let release: () => void;
let shop: Signer;
const tokens = { ada: '', bob: '', eve: '' };

beforeAll(async () => {
  api = await startTestApi({ redis: 'own' });
  const { node, tickets, grantOfMember } = api.features.realtime;
  release = api.stores.platform.upgrades.handle(
    new WebsocketAdmission(node(), { tickets, grantOfMember, origins: [], isOwnOrigin: () => false }),
  );
  url = await api.listen();
  shop = await Signer.create('EdDSA', 'https://shop.example.org', 'one');
  await register(api, shop);
  for (const name of ['ada', 'bob', 'eve'] as const) {
    tokens[name] = await shop.token(name);
    await send(tokens[name], 'GET', 'channels');
  }
});

afterAll(async () => {
  await api.features.realtime.node().stop();
  release();
  await api.stop();
});

const send = (key: string, method: Call['method'], path: string, body?: object, headers = {}): Promise<Answer> =>
  api.call({ method, url: `/api/v1/${path}`, key, headers, ...(body && { body }) });
const userId = (subject: string) => userIdOf({ organizationId: api.organizationId, issuer: shop.issuer, subject });
const userOf = (subject: string) => ({ type: 'authenticated_user', user_id: userId(subject) });

async function channelOf(subjects: string[], more: object = {}): Promise<string> {
  const body = { name: 'Lab', participants: subjects.map(userOf), ...more };
  const { status, json } = await send(api.rootKey, 'POST', 'channels', body);
  expect(status).toBe(200);
  return json.id;
}

async function posted(key: string, channel: string, more: object = {}): Promise<{ id: string; sequence: number }> {
  const body = { content: [{ type: 'text', text: 'hello' }], ...more };
  const answer = await send(key, 'POST', `channels/${channel}/interactions`, body);
  expect(answer).toMatchObject({ status: 200 });
  return answer.json;
}
const agent = { content_role: 'agent_response', participant: { type: 'agent', agent_id: 'clerk' } };

const move = (key: string, channel: string, sequence: number, more: object = {}) =>
  send(key, 'PUT', `channels/${channel}/read_marker`, { sequence, ...more });
const read = (key: string, channel: string, query = '') => send(key, 'GET', `channels/${channel}/read_marker${query}`);
async function unread(key: string, channel: string): Promise<number> {
  const answer = await read(key, channel);
  expect(answer).toMatchObject({ status: 200 });
  return answer.json.unread_count;
}

describe('the number of unread messages', () => {
  it('has the messages of others and of agents, and nothing else that happens in a channel', async () => {
    const channel = await channelOf(['ada', 'bob']);
    expect((await read(tokens.ada, channel)).json).toEqual({
      channel_id: channel,
      user_id: userId('ada'),
      sequence: 0,
      moved_at: null,
      unread_count: 0,
    });
    const first = await posted(tokens.bob, channel);
    await posted(api.rootKey, channel, agent);
    for (const [role, item] of [
      ['tool_call', { type: 'tool_call', tool_name: 't', tool_args: {} }],
      ['tool_call_result', { type: 'tool_call_result', tool_name: 't', tool_result: {} }],
      ['agent_reasoning', { type: 'text', text: 'hm' }],
      ['channel_notification', { type: 'text', text: 'joined' }],
    ] as const) {
      await posted(api.rootKey, channel, { ...agent, content_role: role, content: [item] });
    }
    await send(tokens.bob, 'PUT', `interactions/${first.id}/reactions/👍`);
    await send(tokens.bob, 'PATCH', `interactions/${first.id}`, { content: [{ type: 'text', text: 'edited' }] });
    await send(api.rootKey, 'PATCH', `channels/${channel}`, { name: 'Office' });
    await send(api.rootKey, 'POST', `channels/${channel}/participants`, { type: 'external_agent' });
    expect(await unread(tokens.ada, channel)).toBe(2);
    expect(await unread(tokens.bob, channel)).toBe(1);
  });

  it('ends at a message of its own, which shows that the earlier ones are read', async () => {
    const channel = await channelOf(['ada', 'bob']);
    await posted(tokens.bob, channel);
    const own = await posted(tokens.ada, channel);
    expect((await read(tokens.ada, channel)).json).toMatchObject({ sequence: own.sequence, unread_count: 0 });
    await posted(tokens.bob, channel);
    expect(await unread(tokens.ada, channel)).toBe(1);
    // An own message that is completed after those of others is not unread either.
    const slow = await posted(tokens.ada, channel, { complete: false });
    await posted(tokens.bob, channel);
    await send(tokens.ada, 'POST', `interactions/${slow.id}/complete`, {});
    expect(await unread(tokens.ada, channel)).toBe(0);
    expect(await unread(tokens.bob, channel)).toBe(1);
  });

  it('has no deleted messages, whichever are read, and never becomes negative', async () => {
    const channel = await channelOf(['ada', 'bob']);
    const all = [];
    for (let count = 0; count < 4; count++) all.push(await posted(tokens.bob, channel));
    const last = all.at(-1);
    await send(tokens.bob, 'DELETE', `interactions/${last?.id}`);
    expect(await unread(tokens.ada, channel)).toBe(3);
    await move(tokens.ada, channel, all[1]?.sequence ?? 0);
    await send(tokens.bob, 'DELETE', `interactions/${all[0]?.id}`);
    expect(await unread(tokens.ada, channel)).toBe(1);
    await send(tokens.bob, 'DELETE', `interactions/${all[2]?.id}`);
    expect(await unread(tokens.ada, channel)).toBe(0);
  });

  it('has an answer that was completed while the user was away, also if its beginning was read', async () => {
    const channel = await channelOf(['ada']);
    await posted(tokens.ada, channel);
    const answer = await posted(api.rootKey, channel, { ...agent, complete: false });
    expect(await unread(tokens.ada, channel)).toBe(0);
    expect((await move(tokens.ada, channel, answer.sequence)).json).toMatchObject({ unread_count: 0 });
    await send(api.rootKey, 'POST', `interactions/${answer.id}/complete`, {});
    expect(await unread(tokens.ada, channel)).toBe(1);
    const failing = await posted(api.rootKey, channel, { ...agent, complete: false });
    await send(api.rootKey, 'POST', `interactions/${failing.id}/fail`, { reason: 'no model' });
    expect(await unread(tokens.ada, channel)).toBe(2);
    expect((await move(tokens.ada, channel, failing.sequence + 1)).json).toMatchObject({ unread_count: 0 });
  });

  it('is counted once, in the thread or in the channel, and lists have both', async () => {
    const channel = await channelOf(['ada', 'bob']);
    const origin = await posted(tokens.bob, channel);
    const thread = await channelOf(['ada', 'bob'], { parent_channel_id: channel, origin_message_id: origin.id });
    await channelOf(['bob'], { parent_channel_id: channel });
    for (let count = 0; count < 3; count++) await posted(tokens.bob, thread);
    expect([await unread(tokens.ada, channel), await unread(tokens.ada, thread)]).toEqual([1, 3]);
    await move(tokens.ada, thread, 3);
    const list = async (key: string, query: string) =>
      (await send(key, 'GET', `channels?include_unread=true&size=100${query}`)).json;
    const counts = ({ items }: Answer['json']) =>
      items.map(({ id, read_marker: marker }: Answer['json']) => [id, marker.sequence, marker.unread_count]);
    expect(counts(await list(tokens.ada, `&parent_channel_id=${channel}`))).toEqual([[thread, 3, 1]]);
    const all = await list(tokens.ada, '');
    expect(counts(all)).toEqual(
      expect.arrayContaining([
        [thread, 3, 1],
        [channel, 0, 1],
      ]),
    );
    expect(all.items.find(({ id }: { id: string }) => id === thread).read_marker).toEqual(
      (await read(tokens.ada, thread)).json,
    );
    // Without the parameter, lists and channels are as they were.
    const plain = await send(tokens.ada, 'GET', 'channels?size=100');
    expect(plain.bytes).not.toContain('read_marker');
    expect(counts(await list(api.rootKey, `&participant=${userId('ada')}`))).toEqual(counts(all));
    expect((await list(api.rootKey, '')).items).toEqual([]);
  });

  it('never has an own message, also while both write and a second process reads', async () => {
    const channel = await channelOf(['ada', 'bob']);
    const elsewhere = await api.startInstance();
    try {
      const found: { sequence: number; unread_count: number }[] = [];
      const ofBob: number[] = [];
      const written = new AbortController();
      const reading = [api, elsewhere].map(async ({ call }) => {
        while (!written.signal.aborted) {
          const url = `/api/v1/channels/${channel}/read_marker`;
          found.push((await call({ method: 'GET', url, key: tokens.ada })).json);
        }
      });
      const writing = [tokens.ada, tokens.bob, tokens.bob].map(async (key) => {
        for (let count = 0; count < 25; count++) {
          const { sequence } = await posted(key, channel);
          if (key === tokens.bob) ofBob.push(sequence);
        }
      });
      await Promise.all(writing).finally(() => written.abort());
      await Promise.all(reading);
      expect(found.length).toBeGreaterThan(10);
      for (const { sequence, unread_count: count } of found) {
        const later = ofBob.filter((one) => one > sequence).toSorted((a, b) => a - b);
        expect(count).toBeLessThanOrEqual(later.length);
        // Up to an own message, only messages of others follow: the count is of the next ones without a gap.
        const last = later[count - 1] ?? sequence;
        expect(last - sequence).toBe(count);
      }
    } finally {
      await elsewhere.stop();
    }
  });

  it('begins with the joining of a user, who has not read what was written before', async () => {
    const channel = await channelOf(['ada']);
    for (let count = 0; count < 3; count++) await posted(tokens.ada, channel);
    await send(api.rootKey, 'POST', `channels/${channel}/participants`, userOf('bob'));
    expect(await unread(tokens.bob, channel)).toBe(0);
    const markers = async () => (await send(tokens.ada, 'GET', `channels/${channel}/read_markers`)).json.items;
    expect(await markers()).toEqual([
      { user_id: userId('ada'), sequence: 4, moved_at: null },
      { user_id: userId('bob'), sequence: 0, moved_at: null },
    ]);
    await posted(tokens.ada, channel);
    expect(await unread(tokens.bob, channel)).toBe(1);
    const { json } = await move(tokens.bob, channel, 6);
    expect((await markers())[1]).toEqual({ user_id: userId('bob'), sequence: 6, moved_at: json.moved_at });
    // Removed, its marker is in no list, and moves no more.
    const { json: list } = await send(api.rootKey, 'GET', `channels/${channel}/participants`);
    const { participant_id: record } = list.items[1];
    await send(api.rootKey, 'DELETE', `channels/${channel}/participants/${record}`);
    expect((await markers()).map((one: { user_id: string }) => one.user_id)).toEqual([userId('ada')]);
    expect((await move(tokens.bob, channel, 7)).status).toBe(404);
    const asBob = { user_id: userId('bob') };
    const refused = { status: 403, json: { code: 'not_a_participant' } };
    expect(await move(api.rootKey, channel, 7, asBob)).toMatchObject(refused);
    expect(await read(api.rootKey, channel, `?user_id=${asBob.user_id}`)).toMatchObject(refused);
    await posted(tokens.ada, channel);
    await send(api.rootKey, 'POST', `channels/${channel}/participants`, userOf('bob'));
    expect(await unread(tokens.bob, channel)).toBe(0);
  });
});

describe('a read marker', () => {
  it('is where the furthest device has moved it, in whichever order their requests arrive', async () => {
    const channel = await channelOf(['ada', 'bob']);
    for (let count = 0; count < 20; count++) await posted(tokens.bob, channel);
    const elsewhere = await api.startInstance();
    try {
      const sequences = Array.from({ length: 20 }, (_, index) => ((index * 7) % 20) + 2);
      const answers = await Promise.all(
        sequences.map((sequence, index) =>
          (index % 2 === 0 ? api : elsewhere).call({
            method: 'PUT',
            url: `/api/v1/channels/${channel}/read_marker`,
            key: tokens.ada,
            body: { sequence },
          }),
        ),
      );
      for (const [index, answer] of answers.entries()) {
        expect(answer.status).toBe(200);
        expect(answer.json.sequence).toBeGreaterThanOrEqual(sequences[index] ?? 0);
      }
      expect((await read(tokens.ada, channel)).json).toMatchObject({ sequence: 21, unread_count: 0 });
      const back = await move(tokens.ada, channel, 4);
      expect(back.json).toMatchObject({ sequence: 21, unread_count: 0 });
      const again = await move(tokens.ada, channel, 21);
      expect(again.json).toEqual(back.json);
      expect(again.headers['parley-position']).toBe(back.headers['parley-position']);
      // Another process shows at once what the position promises.
      const position = String(again.headers['parley-position']);
      const there = { method: 'GET', url: `/api/v1/channels/${channel}/read_marker`, key: tokens.ada } as const;
      expect((await elsewhere.call({ ...there, headers: { 'parley-position': position } })).json).toEqual(back.json);
    } finally {
      await elsewhere.stop();
    }
  });

  it('belongs to a person, and only those that may act as it move it', async () => {
    const channel = await channelOf(['ada', 'bob']);
    await posted(tokens.bob, channel);
    const asAda = { user_id: userId('ada') };
    const key = async (body: object) => (await send(api.rootKey, 'POST', 'keys', { name: 'k', ...body })).json.key;
    const service = await key({ principal: { type: 'service', id: 's' }, scopes: ['read', 'write'] });
    for (const answer of [await move(service, channel, 2), await read(service, channel)]) {
      expect(answer).toMatchObject({ status: 422, json: { detail: [{ loc: [expect.anything(), 'user_id'] }] } });
    }
    const refused = { status: 403, json: { code: 'missing_scope' } };
    expect(await move(service, channel, 2, asAda)).toMatchObject(refused);
    expect(await move(tokens.bob, channel, 2, asAda)).toMatchObject(refused);
    expect(await read(tokens.bob, channel, `?user_id=${asAda.user_id}`)).toMatchObject(refused);
    expect(await send(service, 'GET', 'channels?include_unread=true')).toMatchObject({
      status: 422,
      json: { detail: [{ loc: ['query', 'include_unread'] }] },
    });
    const reader = await shop.token('ada', { parley_scopes: ['read'] });
    expect(await move(reader, channel, 2)).toMatchObject(refused);
    // The key of a user that takes no part.
    expect(await move(api.rootKey, channel, 2)).toMatchObject({ status: 403, json: { code: 'not_a_participant' } });
    expect(await read(api.rootKey, channel)).toMatchObject({ status: 403, json: { code: 'not_a_participant' } });
    const own = await key({ principal: { type: 'user', id: userId('ada') }, scopes: ['read', 'write'] });
    expect(await move(own, channel, 1)).toMatchObject({ status: 200, json: { sequence: 1, unread_count: 1 } });
    expect(await move(api.rootKey, channel, 2, asAda)).toMatchObject({ status: 200, json: { sequence: 2, ...asAda } });
    for (const missing of [newId(), 'x']) {
      expect((await move(api.rootKey, missing, 1, asAda)).status).toBe(404);
      expect((await read(api.rootKey, missing)).status).toBe(404);
      expect((await send(api.rootKey, 'GET', `channels/${missing}/read_markers`)).status).toBe(404);
    }
  });

  it('is not beyond the end of the channel', async () => {
    const channel = await channelOf(['ada']);
    const { sequence } = await posted(tokens.ada, channel);
    for (const wrong of [sequence + 1, Number.MAX_SAFE_INTEGER, 0, -1, 1.5, '2', null, undefined]) {
      const answer = await send(tokens.ada, 'PUT', `channels/${channel}/read_marker`, { sequence: wrong });
      expect(answer).toMatchObject({ status: 422, json: { detail: [{ loc: ['body', 'sequence'] }] } });
    }
    expect((await move(tokens.ada, channel, sequence)).status).toBe(200);
    // What another process has appended counts: the log decides.
    const elsewhere = await api.startInstance();
    try {
      const body = { content: [{ type: 'text', text: 'there' }] };
      await elsewhere.call({ method: 'POST', url: `/api/v1/channels/${channel}/interactions`, key: tokens.ada, body });
      expect((await move(tokens.ada, channel, sequence + 1)).status).toBe(200);
    } finally {
      await elsewhere.stop();
    }
    await send(api.rootKey, 'POST', `channels/${channel}/archive`);
    expect((await move(tokens.ada, channel, sequence + 2)).status).toBe(200);
  });

  it('reaches all devices of its user that follow the channel, and nobody else', async () => {
    const channel = await channelOf(['ada', 'bob']);
    await posted(tokens.bob, channel);
    const [laptop, phone, bobs] = [
      await follow(channel, tokens.ada),
      await follow(channel, tokens.ada),
      await follow(channel, tokens.bob),
    ];
    const plain = await follow(channel, tokens.ada, []);
    const stream = await fetch(`${url}/api/v1/channels/${channel}/events?after=0&include=ephemeral`, {
      headers: { authorization: tokens.ada, accept: 'text/event-stream' },
    });
    let streamed = '';
    const reading = stream.body?.pipeTo(
      new WritableStream({ write: (bytes) => void (streamed += Buffer.from(bytes).toString()) }),
    );
    await expect.poll(() => streamed).toContain('id: 2\n');
    const { json: marker } = await move(tokens.ada, channel, 2);
    const frame = {
      frame: 'ephemeral',
      key: `read_marker:${userId('ada')}`,
      n: 2,
      data: marker,
      ttl_ms: 24 * 60 * 60 * 1000,
    };
    await expect.poll(() => [laptop, phone].map(({ values }) => values())).toEqual([[frame], [frame]]);
    // What is sent after it has arrived everywhere, so it would have arrived as well.
    const after = await posted(tokens.bob, channel);
    for (const socket of [laptop, phone, bobs, plain]) {
      await expect.poll(() => socket.frames.some(({ seq }) => seq === after.sequence)).toBe(true);
    }
    expect([bobs.values(), plain.values(), laptop.values()]).toEqual([[], [], [frame]]);
    await expect.poll(() => streamed).toContain(`\n\ndata: ${JSON.stringify(frame)}\n\n`);
    await send(api.rootKey, 'POST', `channels/${channel}/archive`);
    await reading;
    for (const socket of [laptop, phone, bobs, plain]) await socket.end();
  });
});

describe('the client', () => {
  it('moves markers, reads them, and hears of those of its user', async () => {
    const channel = await channelOf(['ada', 'bob']);
    await posted(tokens.bob, channel);
    const [here, there] = [1, 2].map(() => new ParleyClient({ url, apiKey: tokens.ada }).channel(channel));
    const subscription = there?.subscribe({ after: 0 });
    const heard: ReadMarker[] = [];
    subscription?.on('readMarker', (marker) => heard.push(marker));
    await expect.poll(() => subscription?.state.state, { timeout: 10_000 }).toBe('live');
    const moved = await here?.markRead(2);
    expect(moved).toMatchObject({ sequence: 2, unread_count: 0 });
    await expect.poll(() => heard).toEqual([moved]);
    expect(await there?.readMarker()).toEqual(moved);
    expect((await there?.readMarkers())?.map(({ sequence }) => sequence)).toEqual([2, 2]);
    await expect(here?.markRead(3)).rejects.toMatchObject({ name: 'ApiError', status: 422 });
    const strangers = new ParleyClient({ url, apiKey: tokens.eve }).channel(channel);
    await expect(strangers.readMarkers()).rejects.toMatchObject({ status: 404 });
    subscription?.close();
  });
});

describe('without a part of the stores', () => {
  it('is answered with 503 while Redis is away, and is the same after a rebuild', async () => {
    const channel = await channelOf(['ada', 'bob']);
    for (let count = 0; count < 5; count++) await posted(tokens.bob, channel);
    const { json: marker } = await move(tokens.ada, channel, 3);
    expect(marker).toMatchObject({ sequence: 3, unread_count: 3 });
    const { redis } = api.stores;
    await redis.kill9();
    expect([await read(tokens.ada, channel), await move(tokens.ada, channel, 4)]).toMatchObject([
      { status: 503 },
      { status: 503 },
    ]);
    await redis.restart();
    // The event was in the log before the answer failed.
    await eventually(async () => (await read(tokens.ada, channel)).json.sequence === 4);
    await redis.command('FLUSHALL');
    await eventually(async () => (await read(tokens.ada, channel)).json.unread_count === 2);
    expect((await read(tokens.ada, channel)).json).toMatchObject({ sequence: 4, unread_count: 2 });
    expect((await move(tokens.ada, channel, 6)).json).toMatchObject({ sequence: 6, unread_count: 0 });
  });
});

async function follow(channel: string, token: string, include = ['ephemeral']) {
  const socket = new WebSocket(`${url}/api/v1/channels/${channel}/websocket`, ['parley.v1', `token.${token}`]);
  const frames: { frame: string; key?: string; seq?: number }[] = [];
  socket.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString())));
  const closed = once(socket, 'close');
  await once(socket, 'open');
  socket.send(JSON.stringify({ frame: 'resume', after: 0, include }));
  await expect.poll(() => frames.some(({ frame }) => frame === 'caught_up'), { timeout: 10_000 }).toBe(true);
  return {
    frames,
    values: () => frames.filter(({ frame }) => frame === 'ephemeral'),
    end: async () => {
      socket.terminate();
      await closed;
    },
  };
}
