/* What is asked for over websockets, and what is told of answers that are being written, on two processes. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import type { ParleyProcess } from '#test/support/parley-process.ts';
import { startTwoNodes, type TwoNodes } from '#test/support/realtime/nodes.ts';
import { Subscriber } from '#test/support/realtime/subscriber.ts';
import type { Include } from '#test/support/realtime/subscriber.ts';

let nodes: TwoNodes;
let one: ParleyProcess;
let other: ParleyProcess;
const subscribers: Subscriber[] = [];

beforeAll(async () => {
  nodes = await startTwoNodes();
  ({ one, other } = nodes);
}, 60_000);

afterAll(() => nodes?.stop(), 40_000);

afterEach(async () => {
  await Promise.all(subscribers.splice(0).map((subscriber) => subscriber.stop()));
});

async function created(path: string, body: object): Promise<string> {
  const reply = await other.api.post(path, body);
  expect(reply.status).toBe(200);
  return String(asRecord(reply.json())['id']);
}

async function listen(channelId: string, node: ParleyProcess, include: readonly Include[] = []): Promise<Subscriber> {
  const subscriber = new Subscriber({ name: node.baseUrl, channelId, nodes: [node.api], include }).start();
  subscribers.push(subscriber);
  await eventually(() => subscriber.live);
  return subscriber;
}

const framesOf = (subscriber: Subscriber, ...kinds: readonly string[]): Record<string, unknown>[] =>
  subscriber.sessions
    .flatMap(({ frames }) => frames)
    .map((text) => asRecord(JSON.parse(text)))
    .filter(({ frame }) => kinds.includes(String(frame)));

const said = (text: string): object => ({ content: [{ type: 'text', text }] });

describe('a command over a websocket', () => {
  it('is acknowledged with the sequence of the event that everybody hears', async () => {
    const channelId = await created('/api/v1/channels', { name: 'A channel' });
    const [speaker, hearer] = [await listen(channelId, one), await listen(channelId, other)];
    speaker.send({ frame: 'command', id: '1', type: 'interaction.post', data: said('hello') });
    speaker.send({ frame: 'command', id: '2', type: 'interaction.post', data: {} });
    await eventually(() => framesOf(speaker, 'ack', 'error').length === 2);
    expect(framesOf(speaker, 'ack')).toEqual([{ frame: 'ack', id: '1', seq: 2 }]);
    expect(framesOf(speaker, 'error')).toEqual([
      {
        frame: 'error',
        id: '2',
        code: 'invalid',
        detail: [{ type: 'missing', loc: ['body', 'content'], msg: 'Field required', input: {} }],
      },
    ]);
    for (const who of [speaker, hearer]) {
      await eventually(() => framesOf(who, 'event').length === 1);
      expect(framesOf(who, 'event')).toMatchObject([
        { seq: 2, type: 'interaction.posted', data: { sequence: 2, content: [{ text: 'hello' }] } },
      ]);
    }
  });

  it('is done once when its process dies with it, and it is sent again to another one', async () => {
    const channelId = await created('/api/v1/channels', { name: 'A channel' });
    const commands = Array.from({ length: 20 }, (_, n) => ({
      frame: 'command',
      id: newId(),
      type: 'interaction.post',
      data: said(`text ${n}`),
    }));
    const before = await listen(channelId, one);
    for (const command of commands) before.send(command);
    await eventually(() => framesOf(before, 'ack').length > 0);
    await one.kill9();

    const after = await listen(channelId, other);
    for (const command of commands) after.send(command);
    // What the dead process had begun and not noted is free again when its lease has ended.
    await eventually(() => framesOf(after, 'ack').length === commands.length, { timeoutMs: 50_000 });
    expect(framesOf(after, 'error')).toEqual([]);
    const reply = await other.api.get(`/api/v1/channels/${channelId}/interactions?size=100`);
    const items = asRecord(reply.json())['items'];
    const texts = (Array.isArray(items) ? items : []).map((item) => asRecord(item)['content']);
    expect(texts.map((content) => JSON.stringify(content)).toSorted()).toEqual(
      commands.map(({ data }) => JSON.stringify(asRecord(data)['content'])).toSorted(),
    );
    await one.start();
    await one.ready();
  }, 90_000);
});

describe('an answer that is being written', () => {
  it('is heard as it grows by those who asked, from its beginning by who comes late, and ends with the event', async () => {
    const channelId = await created('/api/v1/channels', { name: 'A channel' });
    const path = `/api/v1/channels/${channelId}/interactions`;
    const id = await created(path, { content: [], complete: false });
    const [asked, notAsked] = [await listen(channelId, one, ['incomplete']), await listen(channelId, one)];
    const tell = async (offset: number, text: string): Promise<void> => {
      expect((await other.api.post(`/api/v1/interactions/${id}/deltas`, { offset, text })).status).toBe(200);
    };
    await tell(0, 'Good');
    await tell(4, ' mor');
    const late = await listen(channelId, other, ['incomplete']);
    await eventually(() => framesOf(late, 'snapshot').length > 0);
    await tell(8, 'ning');
    const content = [{ type: 'text', text: 'Good morning' }];
    expect((await other.api.post(`/api/v1/interactions/${id}/complete`, { content })).status).toBe(200);
    for (const who of [asked, notAsked, late]) await eventually(() => framesOf(who, 'event').length === 1);

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

describe('somebody who types', () => {
  it('is heard at the other node by those who asked for what is of the moment', async () => {
    const channelId = await created('/api/v1/channels', { name: 'A channel' });
    const speaker = await listen(channelId, one);
    const [asked, notAsked] = [await listen(channelId, other, ['ephemeral']), await listen(channelId, other)];
    speaker.send({ frame: 'command', id: 't', type: 'typing', data: { agent_id: 'agent-1' } });
    await eventually(() => framesOf(asked, 'ephemeral').length === 1);
    expect(framesOf(asked, 'ephemeral')).toMatchObject([
      { key: 'typing:agent-1', data: { type: 'agent', id: 'agent-1', typing: true }, ttl_ms: 10_000 },
    ]);
    await eventually(() => framesOf(speaker, 'ack').length === 1);
    expect(framesOf(speaker, 'ack')).toEqual([{ frame: 'ack', id: 't', seq: null }]);
    const late = await listen(channelId, one, ['ephemeral']);
    await eventually(() => framesOf(late, 'ephemeral').length === 1);
    expect(framesOf(notAsked, 'ephemeral')).toEqual([]);
  });
});
