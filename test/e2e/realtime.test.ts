/*
 * Websockets and event streams of a running Parley, and of two processes on the same stores: whoever listens gets
 * an exact suffix of the log, whatever happens on the way.
 */
import { once } from 'node:events';

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';

import type { ApiClient } from '#test/support/api-client.ts';
import { answerOf } from '#test/support/channel-load.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { newTicket, openSocket, Subscriber, type Include } from '#test/support/realtime/subscriber.ts';
import { problemsOf } from '#test/support/realtime/sequence-checker.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

let eventStore: TestEventStoreProcess;
let redis: TestRedis;
let one: ParleyProcess;
let other: ParleyProcess;
let userId: string;
const subscribers: Subscriber[] = [];

beforeAll(async () => {
  [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url, env: { CORS_ORIGINS: 'https://app.example' } };
  one = await startParleyProcess(stores);
  other = await startParleyProcess({ ...stores, apiKey: one.apiKey });
  await Promise.all([one.ready(), other.ready()]);
  const users = asRecord((await one.api.get('/api/v1/users')).json())['items'];
  userId = String(asRecord(Array.isArray(users) ? users[0] : undefined)['id']);
}, 60_000);

afterAll(async () => {
  await Promise.all([one?.stop(), other?.stop()]);
  await Promise.all([eventStore?.stop(), redis?.stop()]);
}, 40_000);

afterEach(async () => {
  for (const abort of streams.splice(0)) abort.abort();
  await Promise.all(subscribers.splice(0).map((subscriber) => subscriber.stop()));
});

/** Of which the owner of the key is a participant. */
async function createChannel(): Promise<string> {
  const participants = [{ type: 'authenticated_user', user_id: userId }];
  return answerOf(await one.api.post('/api/v1/channels', { name: 'A channel', participants })).channelId;
}

let texts = 0;
async function post(channelId: string, api: ApiClient = one.api): Promise<void> {
  const body = { content: [{ type: 'text', text: `text ${++texts}` }] };
  expect((await api.post(`/api/v1/channels/${channelId}/interactions`, body)).status).toBe(200);
}

async function postMany(channelId: string, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => post(channelId, n % 2 === 0 ? one.api : other.api)));
}

interface Listening {
  readonly after?: number;
  readonly at?: ApiClient;
  readonly include?: readonly Include[];
}

function subscribe(channelId: string, options: Listening = {}): Subscriber {
  const { after, at = one.api, include = [] } = options;
  const subscriber = new Subscriber({
    name: `subscriber ${subscribers.length}`,
    channelId,
    nodes: [at],
    include,
    ...(after !== undefined && { after }),
  }).start();
  subscribers.push(subscriber);
  return subscriber;
}

const framesOf = (subscriber: Subscriber) =>
  subscriber.sessions.flatMap(({ frames }) => frames.map((text) => asRecord(JSON.parse(text))));
const eventsOf = (subscriber: Subscriber) => framesOf(subscriber).filter(({ frame }) => frame === 'event');
const sequencesOf = (subscriber: Subscriber) => eventsOf(subscriber).map(({ seq }) => seq);
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, n) => first + n);

const streams: AbortController[] = [];

interface Stream {
  readonly status: number;
  text(): string;
  ended(): boolean;
  close(): void;
}

/** On a raw connection: what comes is seen as it comes. */
async function stream(path: string, headers: Record<string, string> = {}, at: ParleyProcess = one): Promise<Stream> {
  const abort = new AbortController();
  streams.push(abort);
  const response = await fetch(`${at.baseUrl}${path}`, {
    headers: { authorization: `Bearer ${at.apiKey}`, ...headers },
    signal: abort.signal,
  });
  let text = '';
  let ended = false;
  const reading = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) text += decoder.decode(chunk, { stream: true });
  };
  reading().then(
    () => (ended = true),
    () => (ended = true),
  );
  return { status: response.status, text: () => text, ended: () => ended, close: () => abort.abort() };
}

const messagesOf = (events: Stream) =>
  events
    .text()
    .split('\n\n')
    .flatMap((message) => {
      const [, id, data] = /^id: (\d+)\ndata: (.*)$/s.exec(message) ?? [];
      return data === undefined ? [] : [{ id: Number(id), data }];
    });

async function isLive(subscriber: Subscriber): Promise<void> {
  await eventually(() => subscriber.live);
}

describe('a socket', () => {
  it('is greeted, gets every event from the beginning, is told when it has caught up, and is live from there', async () => {
    const channelId = await createChannel();
    await postMany(channelId, 20);
    const subscriber = subscribe(channelId, { after: 0 });
    await isLive(subscriber);
    expect(subscriber.session?.hello).toMatchObject({ frame: 'hello', protocol: 'parley.v1', head: 21 });
    await postMany(channelId, 5);
    await eventually(() => subscriber.cursor === 26);
    expect(framesOf(subscriber).map(({ frame, seq }) => `${String(frame)} ${String(seq)}`)).toEqual([
      ...upTo(21).map((seq) => `event ${seq}`),
      'caught_up 21',
      ...upTo(26, 22).map((seq) => `event ${seq}`),
    ]);
  });

  it('resumes in the middle with the very bytes that were sent live', async () => {
    const channelId = await createChannel();
    const live = subscribe(channelId);
    await isLive(live);
    await postMany(channelId, 10);
    await eventually(() => live.cursor === 11);
    const late = subscribe(channelId, { after: 4, at: other.api });
    const whole = subscribe(channelId, { after: 0 });
    await Promise.all([isLive(late), isLive(whole)]);
    const log = whole.sessions[0]?.frames.filter((text) => text.startsWith('{"frame":"event"')) ?? [];
    expect(log).toHaveLength(11);
    expect(problemsOf([live, late, whole].map(receivedOf), { logs: new Map([[channelId, log]]) })).toEqual([]);
    expect(sequencesOf(late)).toEqual(upTo(11, 5));
  });

  it('gets only what is new without a sequence, and nothing of another channel', async () => {
    const [channelId, foreign] = [await createChannel(), await createChannel()];
    await postMany(channelId, 3);
    const subscriber = subscribe(channelId);
    await isLive(subscriber);
    await postMany(foreign, 3);
    await post(channelId);
    await eventually(() => subscriber.cursor === 5);
    expect(sequencesOf(subscriber)).toEqual([5]);
  });

  it('hears at one node what is written through another', async () => {
    const channelId = await createChannel();
    const [here, there] = [subscribe(channelId, { after: 0 }), subscribe(channelId, { after: 0, at: other.api })];
    await Promise.all([isLive(here), isLive(there)]);
    await postMany(channelId, 40);
    await eventually(() => here.cursor === 41 && there.cursor === 41);
    expect(sequencesOf(here)).toEqual(upTo(41));
    expect(here.sessions[0]?.frames.filter((text) => !text.includes('caught_up'))).toEqual(
      there.sessions[0]?.frames.filter((text) => !text.includes('caught_up')),
    );
  });

  it('misses nothing when pub/sub loses messages', async () => {
    const channelId = await createChannel();
    const subscriber = subscribe(channelId, { after: 0 });
    await isLive(subscriber);
    for (let round = 0; round < 5; round++) {
      const posts = postMany(channelId, 40);
      await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await posts;
    }
    await eventually(() => subscriber.cursor === 201, { timeoutMs: 30_000 });
    expect(sequencesOf(subscriber)).toEqual(upTo(201));
    expect(subscriber.sessions).toHaveLength(1);
  }, 60_000);
});

describe('a socket that does not keep up', () => {
  it('is closed with 4009, costs the others nothing, and gets all of it when it comes back', async () => {
    const channelId = await createChannel();
    const slow = subscribe(channelId, { after: 0 });
    const quick = subscribe(channelId, { after: 0 });
    await Promise.all([isLive(slow), isLive(quick)]);
    slow.pause();
    const body = { content: [{ type: 'text', text: 'x'.repeat(60_000) }] };
    let count = 1;
    await eventually(
      async () => {
        const posts = Array.from({ length: 20 }, () =>
          one.api.post(`/api/v1/channels/${channelId}/interactions`, body, { timeoutMs: 30_000 }),
        );
        for (const reply of await Promise.all(posts)) {
          expect(reply.status).toBe(200);
          count += 1;
        }
        return closesOf(await one.api.get('/metrics'), 4009) === 1;
      },
      { timeoutMs: 60_000 },
    );
    await eventually(() => quick.cursor === count, { timeoutMs: 30_000 });
    slow.resume();
    await eventually(() => slow.cursor === count && slow.live, { timeoutMs: 60_000 });
    expect(slow.sessions.map(({ closed }) => closed?.code)).toContain(4009);
    expect(sequencesOf(slow)).toEqual(upTo(count));
    expect(sequencesOf(quick)).toEqual(upTo(count));
    expect(quick.sessions).toHaveLength(1);
  }, 120_000);
});

describe('an answer that is being written', () => {
  const include = ['incomplete'] as const;

  /** The text as a client holds it: what does not fit to what it has, it leaves. */
  function textOf(subscriber: Subscriber): string {
    let text = '';
    for (const frame of subscriber.session?.frames.map((json) => asRecord(JSON.parse(json))) ?? []) {
      if (frame['frame'] === 'snapshot') text = String(frame['text']);
      if (frame['frame'] === 'delta' && frame['offset'] === text.length) text += String(frame['text']);
    }
    return text;
  }

  it('is held in full by everybody who listens at any node, whenever they came, before it is complete', async () => {
    const channelId = await createChannel();
    const begun = { content: [], complete: false, content_role: 'agent_response' };
    const answer = asRecord((await one.api.post(`/api/v1/channels/${channelId}/interactions`, begun)).json());
    const listeners = [subscribe(channelId, { after: 0, include })];
    let written = '';
    for (let n = 0; n < 150; n++) {
      const text = `word${n} 🎈 `;
      const at = n % 2 === 0 ? one.api : other.api;
      const body = { text, offset: written.length };
      expect((await at.post(`/api/v1/interactions/${String(answer['id'])}/deltas`, body)).status).toBe(200);
      written += text;
      if (n % 10 === 0) listeners.push(subscribe(channelId, { at, include, ...(n % 20 === 0 && { after: 0 }) }));
    }
    await eventually(() => expect(listeners.map(textOf)).toEqual(listeners.map(() => written)));
    const completed = await one.api.post(`/api/v1/interactions/${String(answer['id'])}/complete`, {});
    expect(completed.status).toBe(200);
    await eventually(() => listeners.every(({ cursor }) => cursor === 3));
    for (const listener of listeners)
      expect(eventsOf(listener).at(-1)).toMatchObject({ type: 'interaction.completed' });
  }, 60_000);
});

describe('a command', () => {
  it('is acknowledged with the sequence of its event, and done once, however often and wherever it is sent', async () => {
    const channelId = await createChannel();
    const [here, there] = [subscribe(channelId, { after: 0 }), subscribe(channelId, { after: 0, at: other.api })];
    await Promise.all([here, there].map(isLive));
    const id = '0198f3aa-7c11-4d55-8e7a-0000000000aa';
    const data = { content: [{ type: 'text', text: 'by socket' }] };
    const acksOf = (subscriber: Subscriber) =>
      framesOf(subscriber).filter(({ frame }) => frame === 'ack' || frame === 'error');
    here.send({ frame: 'command', id, type: 'interaction.post', data });
    await eventually(() => acksOf(here).length === 1);
    there.send({ frame: 'command', id, type: 'interaction.post', data });
    await eventually(() => acksOf(there).length === 1 && here.cursor === 2 && there.cursor === 2);
    expect([...acksOf(here), ...acksOf(there)]).toEqual([
      { frame: 'ack', id, seq: 2 },
      { frame: 'ack', id, seq: 2 },
    ]);
    here.send({ frame: 'command', id: 'x', type: 'no.such', data: {} });
    await eventually(() => acksOf(here).length === 2);
    expect(acksOf(here)[1]).toMatchObject({ frame: 'error', id: 'x' });
    expect(sequencesOf(here)).toEqual([1, 2]);
  });
});

describe('who may not come in', () => {
  async function closeOf(socket: WebSocket): Promise<{ code: number; messages: string[] }> {
    const messages: string[] = [];
    socket.on('message', (data: Buffer) => messages.push(data.toString()));
    const [code] = await once(socket, 'close');
    return { code: Number(code), messages };
  }
  const refused = { code: 1008, messages: [] };

  it('is closed with 1008 before any frame: a ticket that was used, is none, or is for another channel', async () => {
    const [channelId, foreign] = [await createChannel(), await createChannel()];
    const ticket = await newTicket(one.api, channelId);
    const first = openSocket(one.baseUrl, channelId, ticket);
    await once(first, 'message');
    expect(await closeOf(openSocket(other.baseUrl, channelId, ticket))).toEqual(refused);
    first.close();
    expect(await closeOf(openSocket(one.baseUrl, channelId, 'none'))).toEqual(refused);
    expect(await closeOf(openSocket(one.baseUrl, foreign, await newTicket(one.api, channelId)))).toEqual(refused);
    const url = `${one.baseUrl.replace('http', 'ws')}/api/v1/channels/${channelId}/websocket`;
    expect(await closeOf(new WebSocket(url))).toEqual(refused);
  });

  it('is a page of a foreign origin; one of the list, and a client without origin, may', async () => {
    const channelId = await createChannel();
    const from = async (origin: string) =>
      openSocket(one.baseUrl, channelId, await newTicket(one.api, channelId), { origin });
    expect(await closeOf(await from('https://evil.example'))).toEqual(refused);
    const known = await from('https://app.example');
    const [hello] = await once(known, 'message');
    expect(JSON.parse(String(hello))).toMatchObject({ frame: 'hello' });
    known.close();
  });

  it('may bring the ticket in the query; the server names its protocol, and no ticket', async () => {
    const channelId = await createChannel();
    const url = `${one.baseUrl.replace('http', 'ws')}/api/v1/channels/${channelId}/websocket`;
    const ticket = await newTicket(one.api, channelId);
    const socket = new WebSocket(`${url}?ticket=${ticket}`);
    await once(socket, 'message');
    expect(socket.protocol).toBe('');
    socket.close();
    const named = openSocket(one.baseUrl, channelId, await newTicket(one.api, channelId));
    await once(named, 'open');
    expect(named.protocol).toBe('parley.v1');
    named.close();
    expect(one.output()).not.toContain(ticket);
  });

  it('is told that the server speaks another version, with 4501', async () => {
    const channelId = await createChannel();
    const url = `${one.baseUrl.replace('http', 'ws')}/api/v1/channels/${channelId}/websocket`;
    const socket = new WebSocket(url, ['parley.v9', `ticket.${await newTicket(one.api, channelId)}`]);
    expect(await closeOf(socket)).toEqual({ code: 4501, messages: [] });
  });

  it('gets 404 on another path, and 426 where it asks for no upgrade; other upgrades are not looked at', async () => {
    const channelId = await createChannel();
    const socket = new WebSocket(`${one.baseUrl.replace('http', 'ws')}/api/v1/nowhere`);
    const [error] = await once(socket, 'error');
    expect(String(error)).toContain('404');
    expect((await one.api.get(`/api/v1/channels/${channelId}/websocket`)).status).toBe(426);
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAAP__' };
    expect((await one.api.get(`/api/v1/channels/${channelId}`, { headers })).status).toBe(200);
  });
});

describe('what a client may send', () => {
  async function open(channelId: string): Promise<{ socket: WebSocket; messages: Record<string, unknown>[] }> {
    const socket = openSocket(one.baseUrl, channelId, await newTicket(one.api, channelId));
    const messages: Record<string, unknown>[] = [];
    socket.on('message', (data: Buffer) => messages.push(asRecord(JSON.parse(data.toString()))));
    await once(socket, 'message');
    return { socket, messages };
  }
  const codeOf = async (socket: WebSocket): Promise<number> => Number((await once(socket, 'close'))[0]);

  it('is answered with an error when it is no frame, and the socket goes on', async () => {
    const { socket, messages } = await open(await createChannel());
    for (const text of ['{', '[]', '{"frame":"no"}', '{"frame":"pong","x":1}']) socket.send(text);
    socket.send('{"frame":"ping"}');
    socket.send('{"frame":"resume"}');
    socket.send('{"frame":"resume"}');
    await eventually(() => messages.length >= 8);
    expect(messages.slice(1).map(({ frame, code }) => code ?? frame)).toEqual([
      'invalid_json',
      'invalid_frame',
      'invalid_frame',
      'invalid_frame',
      'pong',
      'caught_up',
      'already_resumed',
    ]);
    socket.close();
    expect(await codeOf(socket)).toBe(1005);
  });

  it.each(['{"after":-1}', '{"after":9223372036854775808}', '{"after":"1e3"}', '{"after":1002}', '{"after":0.5}'])(
    'is refused as a resume, with an error and 4500: %s',
    async (members) => {
      const { socket, messages } = await open(await createChannel());
      socket.send(JSON.stringify({ frame: 'resume' }).replace('}', `,${members.slice(1)}`));
      expect(await codeOf(socket)).toBe(4500);
      expect(messages.at(-1)).toMatchObject({ frame: 'error', code: 'invalid_resume' });
    },
  );

  it('is closed with the code that says what was wrong', async () => {
    const channelId = await createChannel();
    const large = (await open(channelId)).socket;
    large.send(`{"frame":"command","id":"x","type":"${'y'.repeat(64 * 1024)}"}`);
    expect(await codeOf(large)).toBe(1009);
    const binary = (await open(channelId)).socket;
    binary.send(Buffer.from('{"frame":"resume"}'), { binary: true });
    expect(await codeOf(binary)).toBe(1003);
    const garbled = (await open(channelId)).socket;
    garbled.send(Buffer.from([0x22, 0xff, 0xfe, 0x22]), { binary: false });
    expect(await codeOf(garbled)).toBe(1007);
    const flood = (await open(channelId)).socket;
    for (let n = 0; n < 121; n++) flood.send('{"frame":"ping"}');
    expect(await codeOf(flood)).toBe(4008);
  });

  it('is a resume within ten seconds, or the socket is closed with 4500', async () => {
    const { socket } = await open(await createChannel());
    expect(await codeOf(socket)).toBe(4500);
  }, 20_000);
});

describe('the end of access', () => {
  it('comes with the archiving of the channel: the last event, then 4504, also for who comes later', async () => {
    const channelId = await createChannel();
    const subscriber = subscribe(channelId, { after: 0 });
    await isLive(subscriber);
    expect((await one.api.post(`/api/v1/channels/${channelId}/archive`)).status).toBe(200);
    await eventually(() => subscriber.session?.closed !== undefined);
    expect(eventsOf(subscriber).at(-1)).toMatchObject({ type: 'channel.archived', seq: 2 });
    expect(subscriber.session?.closed?.code).toBe(4504);
  });
});

describe('a user who listens', () => {
  /** Somebody else, who takes part in a channel and has a key. */
  async function newListener(channelId: string) {
    const user = asRecord((await one.api.post('/api/v1/users', { display_name: 'Ada' })).json());
    const body = { type: 'authenticated_user', user_id: user['id'] };
    const channel = asRecord((await one.api.post(`/api/v1/channels/${channelId}/participants`, body)).json());
    const participants = channel['participants'];
    if (!Array.isArray(participants)) throw new TypeError('no participants');
    const { id: participantId } = asRecord(participants.find((each) => asRecord(each)['user_id'] === user['id']));
    const request = { name: 'k', scopes: ['read'], principal: { type: 'user', id: user['id'] } };
    const key = asRecord((await one.api.post('/api/v1/keys', request)).json());
    return { participantId: String(participantId), keyId: String(key['id']), key: String(key['key']) };
  }

  it('is sent away with 4503 when taken out of the channel, after the event that says so; the others stay', async () => {
    const channelId = await createChannel();
    const { key, participantId } = await newListener(channelId);
    const listeners = [one, other].map(({ api }) => subscribe(channelId, { after: 0, at: api.withKey(key) }));
    const stays = subscribe(channelId, { after: 0 });
    await Promise.all([...listeners, stays].map(isLive));
    await one.api.delete(`/api/v1/channels/${channelId}/participants/${participantId}`);
    await eventually(() => listeners.every(({ session }) => session?.closed !== undefined));
    for (const listener of listeners) {
      expect(listener.session?.closed?.code).toBe(4503);
      expect(eventsOf(listener).at(-1)).toMatchObject({ type: 'participant.left', seq: 3 });
    }
    await post(channelId);
    await eventually(() => stays.cursor === 4);
    expect(stays.sessions).toHaveLength(1);
  });

  it('is sent away with 4503 at every node when the key is revoked, and so is an event stream', async () => {
    const channelId = await createChannel();
    const { key, keyId } = await newListener(channelId);
    const listeners = [one, other].map(({ api }) => subscribe(channelId, { after: 0, at: api.withKey(key) }));
    const events = await stream(`/api/v1/channels/${channelId}/events`, { authorization: `Bearer ${key}` }, other);
    await Promise.all(listeners.map(isLive));
    await one.api.post(`/api/v1/keys/${keyId}/revoke`);
    await eventually(() => listeners.every(({ session }) => session?.closed !== undefined) && events.ended());
    expect(listeners.map(({ session }) => session?.closed?.code)).toEqual([4503, 4503]);
    expect(events.text()).toContain('event: close\ndata: {"code":4503');
  });
});

describe('an event stream', () => {
  it('has the same frames as a socket, with their sequences as ids', async () => {
    const channelId = await createChannel();
    await postMany(channelId, 5);
    const subscriber = subscribe(channelId, { after: 0 });
    const events = await stream(`/api/v1/channels/${channelId}/events?after=0`);
    await isLive(subscriber);
    await eventually(() => messagesOf(events).length === 6);
    await postMany(channelId, 5);
    await eventually(() => messagesOf(events).length === 11 && subscriber.cursor === 11);
    expect(messagesOf(events).map(({ id }) => id)).toEqual(upTo(11));
    expect(messagesOf(events).map(({ data }) => data)).toEqual(
      subscriber.sessions[0]?.frames.filter((text) => text.startsWith('{"frame":"event"')),
    );
    events.close();
  });

  it('goes on behind Last-Event-ID, whatever the address says', async () => {
    const channelId = await createChannel();
    await postMany(channelId, 5);
    const events = await stream(`/api/v1/channels/${channelId}/events?after=0`, { 'last-event-id': '4' });
    await eventually(() => messagesOf(events).length === 2);
    expect(messagesOf(events).map(({ id }) => id)).toEqual([5, 6]);
    events.close();
  });

  it('says in HTTP why it is not: no such channel, a sequence to come, another type, nothing more to come', async () => {
    const channelId = await createChannel();
    const path = `/api/v1/channels/${channelId}/events`;
    expect((await one.api.get('/api/v1/channels/nowhere/events')).status).toBe(404);
    expect((await one.api.get(`${path}?after=7`)).status).toBe(422);
    expect((await one.api.get(`${path}?after=1e3`)).status).toBe(422);
    expect((await one.api.get(`${path}?include=all`)).status).toBe(422);
    expect((await one.api.get(path, { headers: { 'last-event-id': 'x' } })).status).toBe(422);
    expect((await one.api.get(path, { headers: { accept: 'application/json' } })).status).toBe(406);
    expect((await one.api.withKey(null).get(path)).status).toBe(401);
    expect((await one.api.request('HEAD', path)).headers['content-type']).toMatch('text/event-stream');
    await one.api.post(`/api/v1/channels/${channelId}/archive`);
    expect((await one.api.get(`${path}?after=2`)).status).toBe(204);
    const rest = await stream(`${path}?after=1`);
    await eventually(() => rest.ended());
    expect(messagesOf(rest).map(({ id }) => id)).toEqual([2]);
    expect(rest.text()).toContain('event: close\ndata: {"code":4504');
  });
});

describe('a node of its own', () => {
  it('serves websockets and event streams of what is written through gateways, and nothing else', async () => {
    const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url, apiKey: one.apiKey };
    const node = await startParleyProcess({ ...stores, env: { ROLES: 'realtime' } });
    await node.ready();
    const channelId = await createChannel();
    const socket = openSocket(node.baseUrl, channelId, await newTicket(one.api, channelId));
    const messages: unknown[] = [];
    socket.on('message', (data: Buffer) => messages.push(asRecord(JSON.parse(data.toString()))['seq']));
    await once(socket, 'message');
    socket.send('{"frame":"resume","after":0}');
    const events = await stream(`/api/v1/channels/${channelId}/events?after=0`, {}, node);
    await post(channelId);
    await eventually(() => messages.at(-1) === 2 && messagesOf(events).length === 2);
    expect((await node.api.get(`/api/v1/channels/${channelId}`)).status).toBe(404);
    const code = once(socket, 'close');
    expect(await node.stop()).toBe(0);
    expect((await code)[0]).toBe(1012);
    expect(events.text()).toContain('event: close\ndata: {"code":1012');
  }, 60_000);

  it('answers 503 where its process serves no websockets', async () => {
    const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url, apiKey: one.apiKey };
    const gateway = await startParleyProcess({ ...stores, env: { ROLES: 'gateway' } });
    const channelId = await createChannel();
    const socket = openSocket(gateway.baseUrl, channelId, await newTicket(one.api, channelId));
    const [error] = await once(socket, 'error');
    expect(String(error)).toContain('503');
    await gateway.stop();
  }, 60_000);
});

describe('a node that stops', () => {
  it('sends its sockets and streams elsewhere, with nothing lost', async () => {
    const third = await startParleyProcess({
      eventstoreUrl: eventStore.url,
      redisUrl: redis.url,
      apiKey: one.apiKey,
    });
    await third.ready();
    const channelId = await createChannel();
    const subscriber = new Subscriber({ name: 'moved', channelId, nodes: [third.api, one.api], after: 0 }).start();
    subscribers.push(subscriber);
    await isLive(subscriber);
    const posts = postMany(channelId, 60);
    await third.stop();
    await posts;
    await eventually(() => subscriber.cursor === 61 && subscriber.live);
    expect(sequencesOf(subscriber)).toEqual(upTo(61));
    expect(subscriber.sessions.map(({ closed }) => closed?.code)).toEqual([1012, undefined]);
  }, 60_000);
});

function closesOf({ text }: { text: string }, code: number): number {
  return Number(new RegExp(`^parley_realtime_closes_total\\{code="${code}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0);
}

function receivedOf(subscriber: Subscriber) {
  const { name, channelId, sessions } = subscriber;
  return { name, channelId, after: sessions[0]?.after, sessions };
}
