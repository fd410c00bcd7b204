/*
 * Websockets of two nodes on the same stores: every subscriber receives an exact suffix of the log, whatever fails.
 */
import { once } from 'node:events';

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import type { ParleyHere } from '#test/support/parley-here.ts';
import { startNodeHere } from '#test/support/realtime/nodes.ts';
import { problemsOf } from '#test/support/realtime/sequence-checker.ts';
import { eventsOf, framesOf, isLive, sequencesOf, Stage, upTo } from '#test/support/realtime/stage.ts';
import { newTicket, openSocket, Subscriber } from '#test/support/realtime/subscriber.ts';

let stage: Stage;
let one: ParleyHere;
let other: ParleyHere;
beforeAll(async () => {
  stage = await Stage.start();
  ({ one, other } = stage.nodes);
});

afterAll(() => stage?.stop(), 40_000);

afterEach(() => stage.clear());

describe('a socket', () => {
  it('receives hello, every event from the beginning, caught_up, and then live events', async () => {
    const channelId = await stage.createChannel();
    await stage.postMany(channelId, 20);
    const subscriber = stage.subscribe(channelId, { after: 0 });
    await isLive(subscriber);
    expect(subscriber.session?.hello).toMatchObject({ frame: 'hello', protocol: 'parley.v1', head: 21 });
    await stage.postMany(channelId, 5);
    await eventually(() => subscriber.cursor === 26);
    expect(framesOf(subscriber).map(({ frame, seq }) => `${String(frame)} ${String(seq)}`)).toEqual([
      ...upTo(21).map((seq) => `event ${seq}`),
      'caught_up 21',
      ...upTo(26, 22).map((seq) => `event ${seq}`),
    ]);
  });

  it('resumes after any sequence with the same bytes that were sent live', async () => {
    const channelId = await stage.createChannel();
    const live = stage.subscribe(channelId);
    await isLive(live);
    await stage.postMany(channelId, 10);
    await eventually(() => live.cursor === 11);
    const late = stage.subscribe(channelId, { after: 4, at: other.api });
    const whole = stage.subscribe(channelId, { after: 0 });
    await Promise.all([isLive(late), isLive(whole)]);
    const log = whole.sessions[0]?.frames.filter((text) => text.startsWith('{"frame":"event"')) ?? [];
    expect(log).toHaveLength(11);
    expect(problemsOf([live, late, whole].map(receivedOf), { logs: new Map([[channelId, log]]) })).toEqual([]);
    expect(sequencesOf(late)).toEqual(upTo(11, 5));
  });

  it('receives only new events without a sequence, and none of another channel', async () => {
    const [channelId, foreign] = [await stage.createChannel(), await stage.createChannel()];
    await stage.postMany(channelId, 3);
    const subscriber = stage.subscribe(channelId);
    await isLive(subscriber);
    await stage.postMany(foreign, 3);
    await stage.post(channelId);
    await eventually(() => subscriber.cursor === 5);
    expect(sequencesOf(subscriber)).toEqual([5]);
  });

  it('receives at one node the events that are written through another', async () => {
    const channelId = await stage.createChannel();
    const [here, there] = [
      stage.subscribe(channelId, { after: 0 }),
      stage.subscribe(channelId, { after: 0, at: other.api }),
    ];
    await Promise.all([isLive(here), isLive(there)]);
    await stage.postMany(channelId, 40);
    await eventually(() => here.cursor === 41 && there.cursor === 41);
    expect(sequencesOf(here)).toEqual(upTo(41));
    expect(here.sessions[0]?.frames.filter((text) => !text.includes('caught_up'))).toEqual(
      there.sessions[0]?.frames.filter((text) => !text.includes('caught_up')),
    );
  });

  it('misses no event when pub/sub loses messages', async () => {
    const channelId = await stage.createChannel();
    const subscriber = stage.subscribe(channelId, { after: 0 });
    await isLive(subscriber);
    for (let round = 0; round < 5; round++) {
      const posts = stage.postMany(channelId, 40);
      await stage.nodes.redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
      await posts;
    }
    await eventually(() => subscriber.cursor === 201);
    expect(sequencesOf(subscriber)).toEqual(upTo(201));
    expect(subscriber.sessions).toHaveLength(1);
  });
});

describe('a slow socket', () => {
  it('is closed with 4009 without an effect on others, and receives every event after it resumes', async () => {
    const channelId = await stage.createChannel();
    const slow = stage.subscribe(channelId, { after: 0 });
    const quick = stage.subscribe(channelId, { after: 0 });
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
    await eventually(() => quick.cursor === count);
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

  /** The text that a client assembles: it ignores deltas whose offset does not fit. */
  function textOf(subscriber: Subscriber): string {
    let text = '';
    for (const frame of subscriber.session?.frames.map((json) => asRecord(JSON.parse(json))) ?? []) {
      if (frame['frame'] === 'snapshot') text = String(frame['text']);
      if (frame['frame'] === 'delta' && frame['offset'] === text.length) text += String(frame['text']);
    }
    return text;
  }

  it('is received in full by all subscribers at both nodes, early or late, before it is complete', async () => {
    const channelId = await stage.createChannel();
    const begun = { content: [], complete: false, content_role: 'agent_response' };
    const answer = asRecord((await one.api.post(`/api/v1/channels/${channelId}/interactions`, begun)).json());
    const subscribers = [stage.subscribe(channelId, { after: 0, include })];
    let written = '';
    for (let n = 0; n < 150; n++) {
      const text = `word${n} 🎈 `;
      const at = n % 2 === 0 ? one.api : other.api;
      const body = { text, offset: written.length };
      expect((await at.post(`/api/v1/interactions/${String(answer['id'])}/deltas`, body)).status).toBe(200);
      written += text;
      if (n % 10 === 0)
        subscribers.push(stage.subscribe(channelId, { at, include, ...(n % 20 === 0 && { after: 0 }) }));
    }
    await eventually(() => expect(subscribers.map(textOf)).toEqual(subscribers.map(() => written)));
    const completed = await one.api.post(`/api/v1/interactions/${String(answer['id'])}/complete`, {});
    expect(completed.status).toBe(200);
    await eventually(() => subscribers.every(({ cursor }) => cursor === 3));
    for (const subscriber of subscribers)
      expect(eventsOf(subscriber).at(-1)).toMatchObject({ type: 'interaction.completed' });
  });
});

describe('a command', () => {
  it('is acknowledged with the sequence of its event, and runs once if it is repeated at another node', async () => {
    const channelId = await stage.createChannel();
    const [here, there] = [
      stage.subscribe(channelId, { after: 0 }),
      stage.subscribe(channelId, { after: 0, at: other.api }),
    ];
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

describe('a node without the role realtime', () => {
  it('answers upgrades with 503', async () => {
    const gateway = await startNodeHere({ ...storesOf(stage), env: { ROLES: 'gateway' } });
    const channelId = await stage.createChannel();
    const socket = openSocket(gateway.baseUrl, channelId, await newTicket(one.api, channelId));
    const [error] = await once(socket, 'error');
    expect(String(error)).toContain('503');
    await gateway.stop();
  });
});

describe('a node that stops', () => {
  it('closes its sockets with 1012, and they resume at another node without a gap', async () => {
    const third = await startNodeHere(storesOf(stage));
    const channelId = await stage.createChannel();
    const moved = new Subscriber({ name: 'moved', channelId, nodes: [third.api, one.api], after: 0 });
    const subscriber = stage.follow(moved);
    await isLive(subscriber);
    const posts = stage.postMany(channelId, 60);
    await third.stop();
    await posts;
    await eventually(() => subscriber.cursor === 61 && subscriber.live);
    expect(sequencesOf(subscriber)).toEqual(upTo(61));
    expect(subscriber.sessions.map(({ closed }) => closed?.code)).toEqual([1012, undefined]);
  });
});

/** Stores and key of a node beside the two. */
function storesOf({ nodes: { eventStore, redis, one } }: Stage) {
  return { eventstoreUrl: eventStore.url, redisUrl: redis.url, apiKey: one.apiKey };
}

function closesOf({ text }: { text: string }, code: number): number {
  return Number(new RegExp(`^parley_realtime_closes_total\\{code="${code}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0);
}

function receivedOf(subscriber: Subscriber) {
  const { name, channelId, sessions } = subscriber;
  return { name, channelId, after: sessions[0]?.after, sessions };
}
