/* Event streams of a running Parley: what sockets are told, over HTTP. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import type { ParleyProcess } from '#test/support/parley-process.ts';
import { isLive, messagesOf, Stage, upTo } from '#test/support/realtime/stage.ts';

let stage: Stage;
let one: ParleyProcess;
beforeAll(async () => {
  stage = await Stage.start();
  ({ one } = stage.nodes);
}, 60_000);

afterAll(() => stage?.stop(), 40_000);

afterEach(() => stage.clear());

/** What a stream consists of, in the OpenAPI document. */
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

  it('goes on behind Last-Event-ID, whatever the address says', async () => {
    const channelId = await stage.createChannel();
    await stage.postMany(channelId, 5);
    const events = await stage.stream(`/api/v1/channels/${channelId}/events?after=0`, { 'last-event-id': '4' });
    await eventually(() => messagesOf(events).length === 2);
    expect(messagesOf(events).map(({ id }) => id)).toEqual([5, 6]);
    events.close();
  });

  it('says in HTTP why it is not: no such channel, a sequence to come, another type, nothing more to come', async () => {
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
