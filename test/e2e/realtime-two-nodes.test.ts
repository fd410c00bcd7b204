/* Commands over websockets, the text of answers while it is written, and event streams, at two nodes. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import type { ParleyHere } from '#test/support/parley-here.ts';
import { isLive, messagesOf, Stage, upTo } from '#test/support/realtime/stage.ts';
import type { Include, Subscriber } from '#test/support/realtime/subscriber.ts';

let stage: Stage;
let one: ParleyHere;
let other: ParleyHere;

beforeAll(async () => {
  stage = await Stage.start();
  ({ one, other } = stage.nodes);
});

afterAll(() => stage?.stop(), 40_000);

afterEach(() => stage.clear());

async function created(path: string, body: object): Promise<string> {
  const reply = await other.api.post(path, body);
  expect(reply.status).toBe(200);
  return String(asRecord(reply.json())['id']);
}

async function subscribe(channelId: string, node: ParleyHere, include: readonly Include[] = []): Promise<Subscriber> {
  const subscriber = stage.subscribe(channelId, { at: node.api, include });
  await isLive(subscriber);
  return subscriber;
}

const framesOf = (subscriber: Subscriber, ...kinds: readonly string[]): Record<string, unknown>[] =>
  subscriber.sessions
    .flatMap(({ frames }) => frames)
    .map((text) => asRecord(JSON.parse(text)))
    .filter(({ frame }) => kinds.includes(String(frame)));

const said = (text: string): object => ({ content: [{ type: 'text', text }] });

describe('a command over a websocket', () => {
  it('is acknowledged with the sequence of the event that all subscribers receive', async () => {
    const channelId = await created('/api/v1/channels', { name: 'A channel' });
    const [sender, receiver] = [await subscribe(channelId, one), await subscribe(channelId, other)];
    sender.send({ frame: 'command', id: '1', type: 'interaction.post', data: said('hello') });
    sender.send({ frame: 'command', id: '2', type: 'interaction.post', data: {} });
    await eventually(() => framesOf(sender, 'ack', 'error').length === 2);
    expect(framesOf(sender, 'ack')).toEqual([{ frame: 'ack', id: '1', seq: 2 }]);
    expect(framesOf(sender, 'error')).toEqual([
      {
        frame: 'error',
        id: '2',
        code: 'invalid',
        detail: [{ type: 'missing', loc: ['body', 'content'], msg: 'Field required', input: {} }],
      },
    ]);
    for (const session of [sender, receiver]) {
      await eventually(() => framesOf(session, 'event').length === 1);
      expect(framesOf(session, 'event')).toMatchObject([
        { seq: 2, type: 'interaction.posted', data: { sequence: 2, content: [{ text: 'hello' }] } },
      ]);
    }
  });
});

describe('an answer that is being written', () => {
  it('is sent to subscribers that include it, from its start to a late one, and ends with the event', async () => {
    const channelId = await created('/api/v1/channels', { name: 'A channel' });
    const path = `/api/v1/channels/${channelId}/interactions`;
    const id = await created(path, { content: [], complete: false });
    const [asked, notAsked] = [await subscribe(channelId, one, ['incomplete']), await subscribe(channelId, one)];
    const append = async (offset: number, text: string): Promise<void> => {
      expect((await other.api.post(`/api/v1/interactions/${id}/deltas`, { offset, text })).status).toBe(200);
    };
    await append(0, 'Good');
    await append(4, ' mor');
    const late = await subscribe(channelId, other, ['incomplete']);
    await eventually(() => framesOf(late, 'snapshot').length > 0);
    await append(8, 'ning');
    const content = [{ type: 'text', text: 'Good morning' }];
    expect((await other.api.post(`/api/v1/interactions/${id}/complete`, { content })).status).toBe(200);
    for (const session of [asked, notAsked, late]) await eventually(() => framesOf(session, 'event').length === 1);

    const delta = (offset: number, text: string): object => ({ frame: 'delta', interaction_id: id, offset, text });
    const snapshot = (text: string): object => ({ frame: 'snapshot', interaction_id: id, text });
    const ended = { frame: 'event', type: 'interaction.completed', data: { id, complete: true, content } };
    expect(framesOf(asked, 'delta')).toEqual([delta(0, 'Good'), delta(4, ' mor'), delta(8, 'ning')]);
    expect(framesOf(asked, 'event')).toMatchObject([ended]);
    expect(framesOf(notAsked, 'delta', 'snapshot')).toEqual([]);
    expect(framesOf(notAsked, 'event')).toMatchObject([ended]);
    expect(framesOf(late, 'delta', 'snapshot').slice(-2)).toEqual([snapshot('Good mor'), delta(8, 'ning')]);
  });
});

describe('typing', () => {
  it('is received at the other node by subscribers that include ephemeral frames', async () => {
    const channelId = await created('/api/v1/channels', { name: 'A channel' });
    const sender = await subscribe(channelId, one);
    const [asked, notAsked] = [await subscribe(channelId, other, ['ephemeral']), await subscribe(channelId, other)];
    sender.send({ frame: 'command', id: 't', type: 'typing', data: { agent_id: 'agent-1' } });
    await eventually(() => framesOf(asked, 'ephemeral').length === 1);
    expect(framesOf(asked, 'ephemeral')).toMatchObject([
      { key: 'typing:agent-1', data: { type: 'agent', id: 'agent-1', typing: true }, ttl_ms: 10_000 },
    ]);
    await eventually(() => framesOf(sender, 'ack').length === 1);
    expect(framesOf(sender, 'ack')).toEqual([{ frame: 'ack', id: 't', seq: null }]);
    const late = await subscribe(channelId, one, ['ephemeral']);
    await eventually(() => framesOf(late, 'ephemeral').length === 1);
    expect(framesOf(notAsked, 'ephemeral')).toEqual([]);
  });
});

/** The content of a stream in the OpenAPI document. */
const EVENT = { schema: { $ref: '#/components/schemas/ServerSentEvent' } };

describe('an event stream', () => {
  it('has the same frames as a socket, with their sequences as ids', async () => {
    const channelId = await stage.createChannel();
    await stage.postMany(channelId, 5);
    const subscriber = stage.subscribe(channelId, { after: 0 });
    const events = await stage.stream(`/api/v1/channels/${channelId}/events?after=0`);
    await isLive(subscriber);
    await eventually(() => messagesOf(events).length === 6);
    await stage.postMany(channelId, 5);
    await eventually(() => messagesOf(events).length === 11 && subscriber.cursor === 11);
    expect(messagesOf(events).map(({ id }) => id)).toEqual(upTo(11));
    expect(messagesOf(events).map(({ data }) => data)).toEqual(
      subscriber.sessions[0]?.frames.filter((text) => text.startsWith('{"frame":"event"')),
    );
    events.close();
  });

  it('resumes after Last-Event-ID, which takes precedence over the query', async () => {
    const channelId = await stage.createChannel();
    await stage.postMany(channelId, 5);
    const events = await stage.stream(`/api/v1/channels/${channelId}/events?after=0`, { 'last-event-id': '4' });
    await eventually(() => messagesOf(events).length === 2);
    expect(messagesOf(events).map(({ id }) => id)).toEqual([5, 6]);
    events.close();
  });

  it('is refused in HTTP: unknown channel, future or invalid sequence, another type, an archived channel that was seen', async () => {
    const channelId = await stage.createChannel();
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
    const { paths } = asRecord((await one.api.get('/openapi.json')).json());
    expect(paths).toMatchObject({
      '/api/v1/channels/{id}/events': {
        get: { responses: { 200: { content: { 'text/event-stream': EVENT } }, 204: {}, 404: {}, 406: {}, 422: {} } },
      },
    });
    const rest = await stage.stream(`${path}?after=1`);
    await eventually(() => rest.ended());
    expect(messagesOf(rest).map(({ id }) => id)).toEqual([2]);
    expect(rest.text()).toContain('event: close\ndata: {"code":4504');
  });
});
