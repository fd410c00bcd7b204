/* A whole Parley on a Redis Cluster whose masters die: reads and frames afterwards equal the log. */
import { CHANNEL_PROJECTION_KEYS } from '#test/support/projection-keys.ts';
import { PROJECTIONS } from '#services/features.ts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { ProjectionState } from '#libs/platform/readmodel/index.ts';
import { connectRedis, type RedisClient, waitForRedis } from '#libs/platform/redis/index.ts';
import { startTestEventStore, type TestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { type ParleyHere, startParleyHere } from '#test/support/parley-here.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { startWriters } from '#test/support/realtime/channel-writers.ts';
import { channelLog, framesAgainstLog, replay } from '#test/support/realtime/expected-frames.ts';
import { newChannel, post } from '#test/support/realtime/nodes.ts';
import { problemsOf } from '#test/support/realtime/sequence-checker.ts';
import { type Include, Subscriber } from '#test/support/realtime/subscriber.ts';
import { startTestRedisCluster, type TestRedisCluster, type TestRedisNode } from '#test/support/redis-cluster.ts';
import { flush, keysIn } from '#test/support/redis-commands.ts';

const EVERYTHING: readonly Include[] = ['nested', 'incomplete', 'ephemeral'];
/** Only ends a hang: a failover takes some seconds, and more where nodes wait for their turn. */
const LONG_MS = 90_000;
const WRITES = 60;

let cluster: TestRedisCluster;
let eventStore: TestEventStore;
let parley: ParleyHere;
let redis: RedisClient;
/** A channel on the victim and one elsewhere. */
let channels: readonly [string, string];
/** A master that does not keep the state of the projection. */
let victim: TestRedisNode;
let sockets: readonly Subscriber[];

beforeAll(async () => {
  [cluster, eventStore] = await Promise.all([startTestRedisCluster({ replicas: true }), startTestEventStore()]);
  redis = connectRedis(cluster.url, { onError: () => undefined });
  [parley] = await Promise.all([
    startParleyHere({ EVENTSTORE_URL: eventStore.url, REDIS_URL: cluster.url }),
    waitForRedis(redis, LONG_MS),
  ]);
  const state = cluster.masterOf(CHANNEL_PROJECTION_KEYS.build);
  victim = cluster.masters.find((node) => node !== state) ?? cluster.masters[0];
  channels = [await channelOn((node) => node === victim), await channelOn((node) => node !== victim)];
  sockets = channels.map((channelId, n) =>
    new Subscriber({ name: `socket ${n}`, channelId, nodes: [parley.api], include: EVERYTHING, after: 0 }).start(),
  );
  await eventually(() => sockets.every(({ live }) => live), { timeoutMs: LONG_MS });
}, 180_000);
afterAll(async () => {
  await Promise.all((sockets ?? []).map((socket) => socket.stop()));
  await parley?.stop();
  redis?.close();
  await Promise.all([cluster?.stop(), eventStore?.stop()]);
});

async function channelOn(isRight: (node: TestRedisNode) => boolean): Promise<string> {
  for (;;) {
    const id = await newChannel(parley.api);
    const [key] = await eventually(() => documentsOf(id), { timeoutMs: LONG_MS });
    if (isRight(cluster.masterOf(key))) return id;
  }
}

async function documentsOf(channelId: string): Promise<[string]> {
  const [key, ...more] = await keysIn(redis, `*:${channelId}}:document`);
  if (key === undefined || more.length > 0) throw new Error(`${more.length} documents besides ${key}`);
  return [key];
}

/** Writes to a channel succeed again. */
const writable = (channelId: string, text: string): Promise<number> =>
  eventually(() => post(parley.api, channelId, text), { timeoutMs: LONG_MS, everyMs: 100 });

async function caughtUp(): Promise<void> {
  await eventually(
    async () => {
      const { status, text } = await parley.api.get('/health/ready');
      if (status !== 200 || !text.includes('"phase":"live"') || !text.includes('"caught_up":true'))
        throw new Error(text);
    },
    { timeoutMs: LONG_MS },
  );
}

/** Sockets received the log, each event once; Redis equals a rebuild from the log. */
async function expectAsTheLog(): Promise<void> {
  const logs = new Map<string, readonly string[]>();
  for (const channelId of channels) {
    const events = await channelLog(eventStore.url, channelId);
    const frames = await replay(parley.api, channelId, { include: EVERYTHING, length: events.length });
    expect(framesAgainstLog(frames, events)).toEqual([]);
    logs.set(channelId, frames);
  }
  const cameTo = ({ channelId, cursor = 0 }: Subscriber): boolean => cursor >= (logs.get(channelId)?.length ?? 0);
  await eventually(() => sockets.every(cameTo), { timeoutMs: LONG_MS });
  const received = sockets.map(({ name, channelId, sessions }) => ({ name, channelId, after: 0, sessions }));
  expect(problemsOf(received, { logs })).toEqual([]);

  await caughtUp();
  const kept = await dumpReadModels(redis);
  // A node that has just come back may still be taken for a master, and refuses commands.
  await eventually(() => flush(redis), { timeoutMs: LONG_MS });
  const state = new ProjectionState(redis, PROJECTIONS);
  await eventually(() => state.isComplete(), { timeoutMs: LONG_MS });
  await caughtUp();
  expect(kept).toEqual(await dumpReadModels(redis));
}

describe('on a Redis Cluster', () => {
  it('a master that is killed and comes back loses nothing', { timeout: 180_000 }, async () => {
    const nodes = () => [parley.api];
    const writers = startWriters({ nodes, channels, writers: 3, seed: 1, thinkMs: 15 });
    const through = async (): Promise<void> => {
      const before = writers.acknowledged();
      await eventually(() => writers.acknowledged() >= before + WRITES, { timeoutMs: LONG_MS });
    };
    await through();
    await victim.kill9();
    // Half of the writes are on other nodes.
    await through();
    await victim.restart();
    await writable(channels[0], 'after the master was back');
    await through();
    await writers.stop();
    expect(writers.unexpected).toEqual([]);
    await expectAsTheLog();
  });

  it('a replica with missing data that becomes master is repaired', { timeout: 180_000 }, async () => {
    const [quiet] = channels;
    const text = 'before the failover';
    await writable(quiet, text);
    await caughtUp();
    const before = await dumpReadModels(redis);
    const [holder, replica] = await pairOf(victim);
    await replica.command('CONFIG', 'SET', 'replica-read-only', 'no');
    await replica.command('FLUSHALL');
    await replica.command('CONFIG', 'SET', 'replica-read-only', 'yes');
    await holder.kill9();
    await eventually(async () => (await roleOf(replica)) === 'master', { timeoutMs: LONG_MS });
    // No command writes to the lost keys: only the projector can restore them.
    await eventually(async () => expect(await dumpReadModels(redis)).toEqual(before), { timeoutMs: LONG_MS });
    await holder.restart();
    await writable(quiet, 'after the failover');
    await expectAsTheLog();
  });
});

/** Role of a node and its master: on a busy machine a master is replaced before it is back. */
async function pairOf(node: TestRedisNode): Promise<[TestRedisNode, TestRedisNode]> {
  const replica = cluster.replicas[cluster.masters.indexOf(node)] ?? node;
  return eventually(
    async () => {
      const roles = await Promise.all([roleOf(node), roleOf(replica)]);
      if (roles.join(' ') === 'master connected') return [node, replica];
      if (roles.join(' ') === 'connected master') return [replica, node];
      throw new Error(roles.join(' '));
    },
    { timeoutMs: LONG_MS },
  );
}

/** `master`, or the state of a replica's connection to its master. */
async function roleOf(node: TestRedisNode): Promise<string> {
  const role = await node.command('ROLE');
  const [kind, , , link] = Array.isArray(role) ? role.map(String) : [];
  return String(kind === 'master' ? kind : link);
}
