/* Hundreds of sockets on two nodes, whatever dies: each receives exactly what the log says, from where it began. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { randomFrom } from '#test/support/channel-history.ts';
import { eventually } from '#test/support/eventually.ts';
import { startWriters, type ChannelWriters } from '#test/support/realtime/channel-writers.ts';
import { channelLog, framesAgainstLog, framesWithLess, replay } from '#test/support/realtime/expected-frames.ts';
import { newChannel, startTwoNodes, type TwoNodes } from '#test/support/realtime/nodes.ts';
import { problemsOf, type FrameLog, type Received } from '#test/support/realtime/sequence-checker.ts';
import { Subscriber, type Include } from '#test/support/realtime/subscriber.ts';

const SOCKETS = Number(process.env['REALTIME_SOCKETS'] ?? 240);
/** Writes that must get through between two failures. */
const WRITES = 70;
const SEED = Number(process.env['REALTIME_SEED'] ?? 1);

const EVERYTHING: readonly Include[] = ['nested', 'incomplete', 'ephemeral'];
const INCLUDES: readonly (readonly Include[])[] = [[], ['nested'], ['incomplete'], EVERYTHING];

let nodes: TwoNodes;
beforeAll(async () => {
  nodes = await startTwoNodes();
}, 60_000);
afterAll(() => nodes?.stop(), 40_000);

/** Cuts connections for as long as it is not told to stop. */
function cutAtRandom(sockets: readonly Subscriber[]): { stop(): Promise<void> } {
  const random = randomFrom(SEED);
  const end = new AbortController();
  const ended = (async () => {
    while (!end.signal.aborted) {
      for (let count = 0; count < 3; count++) sockets[random(sockets.length)]?.cut();
      await delay(40 + random(60));
    }
  })();
  return {
    async stop() {
      end.abort();
      await ended;
    },
  };
}

async function writesGetThrough(writers: ChannelWriters, when: string): Promise<void> {
  const before = writers.acknowledged();
  await eventually(() => writers.acknowledged() >= before + WRITES, { timeoutMs: 40_000 }).catch(() => {
    throw new Error(`no writes got through ${when}`);
  });
}

const nameOf = (include: readonly Include[]): string => include.join('+') || 'plain';

/** The log of each channel, as sockets with these includes must see it. */
async function expectedLogs(channels: readonly string[]): Promise<Map<string, Map<string, FrameLog>>> {
  const logs = new Map(INCLUDES.map((include) => [nameOf(include), new Map<string, FrameLog>()]));
  for (const channel of channels) {
    const events = await channelLog(nodes.eventStore.url, channel);
    const see = (include: readonly Include[]) => replay(nodes.one.api, channel, { include, length: events.length });
    const all = await see(EVERYTHING);
    expect(framesAgainstLog(all, events)).toEqual([]);
    for (const include of INCLUDES) {
      const frames = include === EVERYTHING ? all : await see(include);
      const lacks = (data: Record<string, unknown>) =>
        (data['parent_span_id'] !== null && !include.includes('nested')) ||
        (data['complete'] === false && !include.includes('incomplete'));
      expect(framesWithLess(frames, all, lacks)).toEqual([]);
      logs.get(nameOf(include))?.set(channel, frames);
    }
  }
  return logs;
}

describe('sockets on two nodes', () => {
  it('receive the exact suffix of the log through cuts, a restart of Redis and the death of a node', async () => {
    const { one, other, redis } = nodes;
    const channels = await Promise.all([newChannel(one.api), newChannel(other.api), newChannel(one.api)]);
    const writers = startWriters({
      nodes: () => (other.alive() ? [one.api, other.api] : [one.api]),
      channels,
      writers: 6,
      seed: SEED,
      thinkMs: 15,
    });
    await writesGetThrough(writers, 'at first');
    const texts = new Map<string, string>();
    const sockets = Array.from({ length: SOCKETS }, (_, n) => {
      const channelId = channels[n % channels.length] ?? '';
      const include = INCLUDES[Math.floor(n / 3) % INCLUDES.length] ?? [];
      // From the beginning, from somewhere, or only what is new.
      const after = [{ after: 0 }, { after: n % 11 }, {}][Math.floor(n / 12) % 3];
      const of = {
        name: `socket ${n} (${nameOf(include)})`,
        channelId,
        include,
        nodes: [one.api, other.api],
        texts,
      } as const;
      return new Subscriber({ ...of, ...after }, n).start();
    });
    const begun = new Map(sockets.map((socket) => [socket, socket.cursor]));
    try {
      await eventually(() => sockets.every(({ cursor }) => cursor !== undefined), { timeoutMs: 30_000 });
      const cuts = cutAtRandom(sockets);
      await writesGetThrough(writers, 'while connections are cut');
      await redis.restart();
      await writesGetThrough(writers, 'after Redis was back');
      await other.kill9();
      await writesGetThrough(writers, 'after a node was killed');
      await other.start();
      await writesGetThrough(writers, 'after the node was back');
      await cuts.stop();
      await writers.stop();
      expect(writers.unexpected).toEqual([]);

      const logs = await expectedLogs(channels);
      const ends = new Map(channels.map((channel) => [channel, logs.get('plain')?.get(channel)?.length ?? 0]));
      const behind = () => sockets.filter(({ channelId, cursor = 0 }) => cursor < (ends.get(channelId) ?? 0));
      await eventually(() => behind().length === 0, { timeoutMs: 30_000 }).catch(() => undefined);

      for (const include of INCLUDES) {
        const received = sockets
          .filter((socket) => nameOf(socket.include) === nameOf(include))
          .map((socket): Received => ({
            name: socket.name,
            channelId: socket.channelId,
            after: begun.get(socket),
            sessions: socket.sessions,
          }));
        const expected = { logs: logs.get(nameOf(include)) ?? new Map() };
        expect(problemsOf(received, expected)).toEqual([]);
        expectFaultsToBeFound(received, expected);
      }
      // It must have been worth looking at.
      const sessions = sockets.flatMap(({ sessions }) => sessions);
      expect(sessions.length).toBeGreaterThan(SOCKETS * 2);
      expect(sessions.filter(({ node }) => node === other.baseUrl).length).toBeGreaterThan(SOCKETS / 2);
    } finally {
      await writers.stop();
      await Promise.all(sockets.map((socket) => socket.stop()));
    }
  }, 180_000);
});

/** The checker on what was received just now: whatever is planted in it is found. */
function expectFaultsToBeFound(received: readonly Received[], expected: { logs: ReadonlyMap<string, FrameLog> }): void {
  const [first] = received;
  if (first === undefined) throw new TypeError('nothing was received');
  const at = first.sessions.findIndex(({ frames }) => frames.filter((text) => text.includes('"event"')).length > 3);
  const frames = first.sessions[at]?.frames ?? [];
  const index = frames.findIndex((text, n) => text.includes('"event"') && frames[n + 1]?.includes('"event"') === true);
  const planted = (doctored: readonly string[]) => {
    const sessions = first.sessions.map((session, n) => (n === at ? { ...session, frames: doctored } : session));
    return problemsOf([{ ...first, sessions }], expected).map((problem) => problem.split(':')[0]);
  };
  const [one = '', next = ''] = frames.slice(index, index + 2);
  expect(planted(frames.toSpliced(index, 1))).toContain('gap');
  expect(planted(frames.toSpliced(index, 0, one))).toContain('double');
  expect(planted(frames.with(index, next).with(index + 1, one))).toContain('reorder');
  expect(planted(frames.with(index, one.replace('"seq"', '"Seq"').replace('"Seq"', '"seq" ')))).toContain('altered');
}
