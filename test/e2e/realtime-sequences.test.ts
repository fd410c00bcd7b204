/* Sockets and commands on two nodes, one of which is killed: each socket receives the log's suffix, each command runs once. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import type { ParleyHere } from '#test/support/parley-here.ts';
import type { ParleyProcess } from '#test/support/parley-process.ts';
import { IN_CAMPAIGN } from '#test/support/rounds.ts';
import { startWriters, type ChannelWriters } from '#test/support/realtime/channel-writers.ts';
import { newChannel, startNodeProcess, startTwoNodes, type TwoNodes } from '#test/support/realtime/nodes.ts';
import { problemsOf } from '#test/support/realtime/sequence-checker.ts';
import {
  cutAtRandom,
  expectedLogs,
  INCLUDES,
  nameOf,
  plantedFaults,
  receivedBy,
  startSockets,
} from '#test/support/realtime/sockets.ts';
import { framesOf, isLive } from '#test/support/realtime/stage.ts';
import { Subscriber } from '#test/support/realtime/subscriber.ts';

const SOCKETS = Number(process.env['REALTIME_SOCKETS'] ?? (IN_CAMPAIGN ? 120 : 30));
/** Writes that must be acknowledged between two failures. */
const WRITES = IN_CAMPAIGN ? 70 : 30;
const SEED = Number(process.env['REALTIME_SEED'] ?? 1);

let nodes: TwoNodes<ParleyProcess>;
beforeAll(async () => {
  nodes = await startTwoNodes(startNodeProcess);
});
afterAll(() => nodes?.stop(), 40_000);

async function writesContinue(writers: ChannelWriters, when: string): Promise<void> {
  const before = writers.acknowledged();
  await eventually(() => writers.acknowledged() >= before + WRITES).catch(() => {
    throw new Error(`no writes were acknowledged ${when}`);
  });
}

describe('sockets on two nodes', () => {
  it('receive the exact suffix of the log while connections are cut, Redis restarts and a node is killed', async () => {
    const { one, other, redis, eventStore } = nodes;
    const channels = await Promise.all([newChannel(one.api), newChannel(other.api), newChannel(one.api)]);
    const writers = startWriters({
      nodes: () => (other.alive() ? [one.api, other.api] : [one.api]),
      channels,
      writers: 6,
      seed: SEED,
      thinkMs: IN_CAMPAIGN ? 15 : 30,
    });
    await writesContinue(writers, 'at first');
    const sockets = startSockets({ count: SOCKETS, channels, nodes: [one.api, other.api] });
    const begun = new Map(sockets.map((socket) => [socket, socket.cursor]));
    try {
      await eventually(() => sockets.every(({ cursor }) => cursor !== undefined));
      const cuts = cutAtRandom(sockets, { seed: SEED, everyMs: IN_CAMPAIGN ? 50 : 100 });
      await writesContinue(writers, 'while connections are cut');
      await redis.restart();
      await writesContinue(writers, 'after Redis was back');
      await other.kill9();
      await writesContinue(writers, 'after a node was killed');
      await other.start();
      await writesContinue(writers, 'after the node was back');
      // Enough reconnections, at both nodes.
      await eventually(() => {
        const sessions = sockets.flatMap((socket) => socket.sessions);
        const atOther = sessions.filter(({ node }) => node === other.baseUrl);
        return sessions.length > SOCKETS * 2 && atOther.length > SOCKETS / 2;
      });
      await cuts.stop();
      await writers.stop();
      expect(writers.unexpected).toEqual([]);

      const { logs, problems } = await expectedLogs({ node: one.api, eventstoreUrl: eventStore.url }, channels);
      expect(problems).toEqual([]);
      const ends = new Map(channels.map((channel) => [channel, logs.get('plain')?.get(channel)?.length ?? 0]));
      const behind = () => sockets.filter(({ channelId, cursor = 0 }) => cursor < (ends.get(channelId) ?? 0));
      await eventually(() => behind().length === 0).catch(() => undefined);

      for (const include of INCLUDES) {
        const received = receivedBy(sockets, include, begun);
        const expected = { logs: logs.get(nameOf(include)) ?? new Map() };
        expect(problemsOf(received, expected)).toEqual([]);
        // The checker must find faults that are planted in the received frames.
        for (const [kind, found] of Object.entries(plantedFaults(received, expected))) expect(found).toContain(kind);
      }
    } finally {
      await writers.stop();
      await Promise.all(sockets.map((socket) => socket.stop()));
    }
  }, 180_000);
});

describe('a command over a websocket', () => {
  it('runs once if its process dies and the client sends it again to another one', async () => {
    const { one, other } = nodes;
    const channelId = await newChannel(one.api);
    const commands = Array.from({ length: 20 }, (_, n) => ({
      frame: 'command',
      id: newId(),
      type: 'interaction.post',
      data: { content: [{ type: 'text', text: `text ${n}` }] },
    }));
    const subscriberAt = ({ api }: ParleyHere) => new Subscriber({ name: 'sender', channelId, nodes: [api] });
    const [before, after] = [subscriberAt(other), subscriberAt(one)];
    const answersTo = (subscriber: Subscriber, kind: 'ack' | 'error') =>
      framesOf(subscriber).filter(({ frame }) => frame === kind);
    try {
      await isLive(before.start());
      for (const command of commands) before.send(command);
      await eventually(() => answersTo(before, 'ack').length > 0);
      await other.kill9();

      await isLive(after.start());
      for (const command of commands) after.send(command);
      // The dead process's command can run elsewhere once its lease has ended.
      await eventually(() => answersTo(after, 'ack').length === commands.length);
      expect(answersTo(after, 'error')).toEqual([]);
    } finally {
      await Promise.all([before, after].map((subscriber) => subscriber.stop()));
    }
    const reply = await one.api.get(`/api/v1/channels/${channelId}/interactions?size=100`);
    const items = asRecord(reply.json())['items'];
    const texts = (Array.isArray(items) ? items : []).map((item) => asRecord(item)['content']);
    expect(texts.map((content) => JSON.stringify(content)).toSorted()).toEqual(
      commands.map(({ data }) => JSON.stringify(data.content)).toSorted(),
    );
  }, 90_000);
});
