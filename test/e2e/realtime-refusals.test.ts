/* Refused connections, refused frames and ended access: each has its close code or error. */
import { once } from 'node:events';

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';

import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import type { ParleyHere } from '#test/support/parley-here.ts';
import { eventsOf, isLive, Stage } from '#test/support/realtime/stage.ts';
import { newTicket, openSocket } from '#test/support/realtime/subscriber.ts';

let stage: Stage;
let one: ParleyHere;
let other: ParleyHere;
beforeAll(async () => {
  stage = await Stage.start({ CORS_ORIGINS: 'https://app.example' });
  ({ one, other } = stage.nodes);
});

afterAll(() => stage?.stop(), 40_000);

afterEach(() => stage.clear());

describe('a connection', () => {
  async function closeOf(socket: WebSocket): Promise<{ code: number; messages: string[] }> {
    const messages: string[] = [];
    socket.on('message', (data: Buffer) => messages.push(data.toString()));
    const [code] = await once(socket, 'close');
    return { code: Number(code), messages };
  }
  const refused = { code: 1008, messages: [] };

  it('is closed with 1008 before any frame if its ticket is used, missing, unknown or for another channel', async () => {
    const [channelId, foreign] = [await stage.createChannel(), await stage.createChannel()];
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

  it('is closed with 1008 before any frame if the key is revoked or expired, or its user deactivated', async () => {
    const channelId = await stage.createChannel();
    const newKey = async (body: object) => {
      const key = asRecord(
        (await one.api.post('/api/v1/keys', { name: 'k', scopes: ['read'], access: 'organization', ...body })).json(),
      );
      const api = one.api.withKey(String(key['key']));
      return { id: String(key['id']), api, ticket: await newTicket(api, channelId) };
    };
    const user = String(asRecord((await one.api.post('/api/v1/users', { display_name: 'Ada' })).json())['id']);
    const revoked = await newKey({ principal: { type: 'service', id: 'robot' } });
    const deactivated = await newKey({ principal: { type: 'user', id: user } });
    const expired = await newKey({ expires_at: new Date(Date.now() + 5_000).toISOString() });
    await one.api.post(`/api/v1/keys/${revoked.id}/revoke`);
    await one.api.delete(`/api/v1/users/${user}`);
    await eventually(async () => (await expired.api.get('/api/v1/channels')).status === 401);
    for (const { ticket } of [revoked, deactivated, expired]) {
      expect(await closeOf(openSocket(other.baseUrl, channelId, ticket))).toEqual(refused);
    }
  });

  it('is refused from a foreign origin, and accepted from an allowed one', async () => {
    const channelId = await stage.createChannel();
    const from = async (origin: string) =>
      openSocket(one.baseUrl, channelId, await newTicket(one.api, channelId), { origin });
    expect(await closeOf(await from('https://evil.example'))).toEqual(refused);
    const known = await from('https://app.example');
    const [hello] = await once(known, 'message');
    expect(JSON.parse(String(hello))).toMatchObject({ frame: 'hello' });
    known.close();
  });

  it('may have the ticket in the query; the server answers with its protocol only', async () => {
    const channelId = await stage.createChannel();
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
  });

  it('is closed with 4501 for an unknown version', async () => {
    const channelId = await stage.createChannel();
    const url = `${one.baseUrl.replace('http', 'ws')}/api/v1/channels/${channelId}/websocket`;
    const socket = new WebSocket(url, ['parley.v9', `ticket.${await newTicket(one.api, channelId)}`]);
    expect(await closeOf(socket)).toEqual({ code: 4501, messages: [] });
  });

  it('gets 404 on another path, and 426 without an upgrade; upgrades to other protocols are ignored', async () => {
    const channelId = await stage.createChannel();
    const socket = new WebSocket(`${one.baseUrl.replace('http', 'ws')}/api/v1/nowhere`);
    const [error] = await once(socket, 'error');
    expect(String(error)).toContain('404');
    expect((await one.api.get(`/api/v1/channels/${channelId}/websocket`)).status).toBe(426);
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABkAAQAAP__' };
    expect((await one.api.get(`/api/v1/channels/${channelId}`, { headers })).status).toBe(200);
  });
});

describe('a frame of a client', () => {
  async function open(channelId: string): Promise<{ socket: WebSocket; messages: Record<string, unknown>[] }> {
    const socket = openSocket(one.baseUrl, channelId, await newTicket(one.api, channelId));
    const messages: Record<string, unknown>[] = [];
    socket.on('message', (data: Buffer) => messages.push(asRecord(JSON.parse(data.toString()))));
    await once(socket, 'message');
    return { socket, messages };
  }
  const codeOf = async (socket: WebSocket): Promise<number> => Number((await once(socket, 'close'))[0]);

  it('is answered with an error if it is invalid, and the socket stays open', async () => {
    const { socket, messages } = await open(await stage.createChannel());
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
      const { socket, messages } = await open(await stage.createChannel());
      socket.send(JSON.stringify({ frame: 'resume' }).replace('}', `,${members.slice(1)}`));
      expect(await codeOf(socket)).toBe(4500);
      expect(messages.at(-1)).toMatchObject({ frame: 'error', code: 'invalid_resume' });
    },
  );

  it('closes the socket with the code of its fault', async () => {
    const channelId = await stage.createChannel();
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

  it('must be a resume within ten seconds, or the socket is closed with 4500', async () => {
    const { socket } = await open(await stage.createChannel());
    expect(await codeOf(socket)).toBe(4500);
  }, 20_000);
});

describe('the archiving of a channel', () => {
  it('sends the last event and closes with 4504', async () => {
    const channelId = await stage.createChannel();
    const subscriber = stage.subscribe(channelId, { after: 0 });
    await isLive(subscriber);
    expect((await one.api.post(`/api/v1/channels/${channelId}/archive`)).status).toBe(200);
    await eventually(() => subscriber.session?.closed !== undefined);
    expect(eventsOf(subscriber).at(-1)).toMatchObject({ type: 'channel.archived', seq: 2 });
    expect(subscriber.session?.closed?.code).toBe(4504);
  });

  it('refuses commands without events, such as typing', async () => {
    const channelId = await stage.createChannel();
    expect((await one.api.post(`/api/v1/channels/${channelId}/archive`)).status).toBe(200);
    const socket = openSocket(one.baseUrl, channelId, await newTicket(one.api, channelId));
    const frames: Record<string, unknown>[] = [];
    socket.on('message', (data: Buffer) => frames.push(asRecord(JSON.parse(data.toString()))));
    await once(socket, 'message');
    socket.send(JSON.stringify({ frame: 'command', id: '1', type: 'typing' }));
    await eventually(() => frames.length > 1);
    expect(frames[1]).toEqual({ frame: 'error', id: '1', code: 'archived', detail: 'The channel is archived' });
    socket.close();
  });
});

describe('the subscription of a user', () => {
  /** Another user, who takes part in the channel, with a key. */
  async function newParticipant(channelId: string) {
    const user = asRecord((await one.api.post('/api/v1/users', { display_name: 'Ada' })).json());
    const body = { type: 'authenticated_user', user_id: user['id'] };
    const channel = asRecord((await one.api.post(`/api/v1/channels/${channelId}/participants`, body)).json());
    const participants = channel['participants'];
    if (!Array.isArray(participants)) throw new TypeError('no participants');
    const { id: participantId } = asRecord(participants.find((each) => asRecord(each)['user_id'] === user['id']));
    const principal = { type: 'user', id: user['id'] };
    const request = { name: 'k', scopes: ['read'], access: 'organization', principal };
    const key = asRecord((await one.api.post('/api/v1/keys', request)).json());
    return { participantId: String(participantId), keyId: String(key['id']), key: String(key['key']) };
  }

  it('is closed with 4010 after the event of its removal from the channel, and may resume with a new ticket', async () => {
    const channelId = await stage.createChannel();
    const { key, participantId } = await newParticipant(channelId);
    const subscribers = [one, other].map(({ api }) => stage.subscribe(channelId, { after: 0, at: api.withKey(key) }));
    const stays = stage.subscribe(channelId, { after: 0 });
    await Promise.all([...subscribers, stays].map(isLive));
    await one.api.delete(`/api/v1/channels/${channelId}/participants/${participantId}`);
    await eventually(() => subscribers.every(({ sessions }) => sessions[0]?.closed !== undefined));
    for (const subscriber of subscribers) {
      expect(subscriber.sessions[0]?.closed?.code).toBe(4010);
      expect(eventsOf(subscriber).at(-1)).toMatchObject({ type: 'participant.left', seq: 3 });
    }
    await stage.post(channelId);
    await eventually(() => [...subscribers, stays].every(({ cursor }) => cursor === 4));
    expect(subscribers.map(({ sessions }) => sessions.length)).toEqual([2, 2]);
    expect(stays.sessions).toHaveLength(1);
  });

  it('is closed with 4503 at every node when the key is revoked, as is an event stream', async () => {
    const channelId = await stage.createChannel();
    const { key, keyId } = await newParticipant(channelId);
    const subscribers = [one, other].map(({ api }) => stage.subscribe(channelId, { after: 0, at: api.withKey(key) }));
    const events = await stage.stream(
      `/api/v1/channels/${channelId}/events`,
      { authorization: `Bearer ${key}` },
      other,
    );
    await Promise.all(subscribers.map(isLive));
    await one.api.post(`/api/v1/keys/${keyId}/revoke`);
    await eventually(() => subscribers.every(({ session }) => session?.closed !== undefined) && events.ended());
    expect(subscribers.map(({ session }) => session?.closed?.code)).toEqual([4503, 4503]);
    expect(events.text()).toContain('event: close\ndata: {"code":4503');
  });
});
