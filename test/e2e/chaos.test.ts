/*
 * Stores and processes are killed in turn under load; afterwards every acknowledged write is in the log once, in
 * order, and REST shows it. CHAOS_ROUNDS sets the number of kills, CHAOS_SEED their moments.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import { interactionId } from '#libs/features/channels/interaction/interaction.id.ts';
import { findRunning } from '#infra/data-folder/index.ts';
import { redisProcessesIn } from '#infra/private-redis/orphans.ts';
import { randomFrom } from '#test/support/channel-history.ts';
import type { ApiClient } from '#test/support/api-client.ts';
import { startChannelLoad, type ChannelLoad } from '#test/support/channel-load.ts';
import { startTestEventStore } from '#test/support/event-store.ts';
import { eventually } from '#test/support/eventually.ts';
import { problemsOf, requestOf, type Observation } from '#test/support/history-checker.ts';
import { withEventTwice, withoutEvent, withSwapped } from '#test/support/history-doctor.ts';
import { httpEndpoint, startInteractionLoad } from '#test/support/interaction-load.ts';
import { readLog, type LogEvent } from '#test/support/log-reader.ts';
import { observe } from '#test/support/observation.ts';
import { startParleyHere } from '#test/support/parley-here.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { newChannel } from '#test/support/realtime/nodes.ts';
import { startTestRedis } from '#test/support/redis.ts';
import { IN_CAMPAIGN, rounds } from '#test/support/rounds.ts';
import { newTenant } from '#test/support/tenants.ts';
import { writeProblems } from '#test/support/write-checker.ts';

const ROUNDS = Number(process.env['CHAOS_ROUNDS'] ?? rounds(3));
const SEED = Number(process.env['CHAOS_SEED'] ?? 1);
const ROUND_MS = 30_000;
const RETRY_GRACE_MS = 5_000;

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

function owned<T extends { stop(): Promise<unknown> }>(part: T): T {
  stops.push(() => part.stop());
  return part;
}

interface Victim {
  readonly name: string;
  /** Ends it abruptly. */
  kill(): Promise<unknown>;
  /** Starts it again, unless its supervisor does. */
  revive(): Promise<void>;
}

/** Kills the victims one after another; after each kill writes must succeed again before the next. */
async function killInTurn(
  victims: readonly [Victim, ...Victim[]],
  load: Pick<ChannelLoad, 'acknowledged'>,
  parley: Pick<ParleyProcess, 'alive' | 'output'> | null,
  killings: number,
): Promise<void> {
  const random = randomFrom(SEED);
  for (let round = 0; round < killings; round++) {
    const victim = victims[round % victims.length] ?? victims[0];
    await writesGetThrough(load, `before ${victim.name} dies`);
    await delay(random(300));
    await victim.kill();
    // Sometimes it is back before a call fails, sometimes calls reach their deadlines.
    await delay(random(3) === 0 ? 2_500 : random(500));
    await victim.revive();
    await writesGetThrough(load, `after ${victim.name} was back`);
    if (parley?.alive() === false) throw new Error(`Parley ended after ${victim.name} was killed:\n${parley.output()}`);
  }
}

async function writesGetThrough(load: Pick<ChannelLoad, 'acknowledged'>, when: string): Promise<void> {
  const before = load.acknowledged();
  await eventually(() => load.acknowledged() > before + 20, { timeoutMs: ROUND_MS }).catch(() => {
    throw new Error(`no writes succeeded ${when}`);
  });
}

/** Expects no problems, and enough acknowledged and failed writes for the result to mean something. */
function expectSound(observation: Observation, killings: number): void {
  expect(problemsOf(observation)).toEqual([]);
  const outcomes = observation.operations.flatMap(({ attempts }) => attempts.map(({ outcome }) => outcome));
  const count = (wanted: string): number => outcomes.filter((outcome) => outcome === wanted).length;
  expect(count('acknowledged')).toBeGreaterThan(killings * 40);
  expect(count('unknown') + count('not_written')).toBeGreaterThan(killings);
}

describe('under load, with everything killed in turn', () => {
  it(
    'separate stores and Parley lose, duplicate and reorder nothing',
    async () => {
      const eventStore = owned(await startTestEventStore({ mode: 'process' }));
      const redis = owned(await startTestRedis());
      const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
      // Needs a process of its own only where it is killed: in the fourth round, which `npm test` does not reach.
      const killed = ROUNDS >= 4 ? owned(await startParleyProcess(stores)) : null;
      await killed?.ready();
      const killable = (): ParleyProcess => {
        if (killed === null) throw new Error('Parley runs in the process of the test');
        return killed;
      };
      const { api } = killed ?? owned(await startParleyHere({ EVENTSTORE_URL: eventStore.url, REDIS_URL: redis.url }));
      const load = startChannelLoad({ clients: [api], writers: 8, seed: SEED });
      const victims: [Victim, ...Victim[]] = [
        { name: 'the event store', kill: () => eventStore.kill9(), revive: () => eventStore.restart() },
        { name: 'Redis', kill: () => redis.kill9(), revive: () => redis.restart() },
        { name: 'the silent event store', kill: () => silence(eventStore), revive: () => eventStore.resume() },
        { name: 'Parley', kill: async () => killable().kill9(), revive: async () => killable().start() },
        { name: 'the memory of Redis', kill: () => redis.command('FLUSHALL'), revive: async () => undefined },
      ];
      await killInTurn(victims, load, killed, ROUNDS);
      await load.stop(RETRY_GRACE_MS);

      const observation = await observe(load.operations, { eventstoreUrl: eventStore.url, api });
      expectSound(observation, ROUNDS);

      // The checker finds each fault that is planted in this log.
      const { log } = observation;
      const formerOf = (at: number): number =>
        log.findLastIndex(
          ({ stream, type }, before) => before < at && stream === log[at]?.stream && type === 'ChannelRenamed.v1',
        );
      // Swapping needs two renames of one channel.
      const index = log.findLastIndex(({ type }, at) => type === 'ChannelRenamed.v1' && formerOf(at) >= 0);
      const former = formerOf(index);
      const planted = (doctored: typeof log) => problemsOf({ ...observation, log: doctored }).join('\n');
      expect(planted(withoutEvent(log, index))).toMatch(/^(lost|stale|wrong)/m);
      expect(planted(withEventTwice(log, index))).toMatch(/^twice/m);
      expect(planted(withSwapped(log, former, index))).toMatch(/^(reordered|lost)/m);

      // Read models that were lost are rebuilt from the log.
      await redis.command('FLUSHALL');
      const rebuilt = await observe(load.operations, { eventstoreUrl: eventStore.url, api });
      expect(problemsOf(rebuilt)).toEqual([]);
    },
    ROUNDS * ROUND_MS + 120_000,
  );

  it.runIf(IN_CAMPAIGN)(
    'standalone resumes after it is killed or loses its private Redis',
    async () => {
      const killings = Math.max(2, Math.ceil(ROUNDS / 5));
      const parley = owned(await startParleyProcess());
      await parley.ready();
      const eventstoreUrl = (await findRunning(parley.dataDir))?.eventstoreUrl ?? '';
      expect(eventstoreUrl).toMatch(/^esdb:/);
      const posts = await startPosts(parley.api, eventstoreUrl);
      const channels = startChannelLoad({ clients: [parley.api], writers: 6, seed: SEED + 1 });
      const load = { acknowledged: () => Math.min(posts.acknowledged(), channels.acknowledged()) };
      const victims: [Victim, ...Victim[]] = [
        { name: 'the standalone', kill: () => parley.kill9(), revive: () => parley.start() },
        { name: 'its private Redis', kill: () => killPrivateRedis(parley), revive: async () => undefined },
      ];
      await killInTurn(victims, load, parley, killings);
      await Promise.all([posts.stop(RETRY_GRACE_MS), channels.stop(RETRY_GRACE_MS)]);

      const of = (await findRunning(parley.dataDir))?.eventstoreUrl ?? '';
      const isOwn = (event: LogEvent): boolean => !posts.isOf(event);
      expectSound(await observe(channels.operations, { eventstoreUrl: of, api: parley.api, isOwn }), killings);
      await posts.expectSound(of);
      expect(await parley.stop()).toBe(0);
    },
    ROUNDS * ROUND_MS + 60_000,
  );
});

/** Posts, updates and reactions in channels of an organization of their own. */
async function startPosts(root: ApiClient, eventstoreUrl: string) {
  const { api } = await newTenant(root);
  const channels = [await newChannel(api), await newChannel(api)] as const;
  const isOf = ({ stream }: LogEvent): boolean => channels.some((id) => stream === `channel-${id}`);
  const logOf = async (url: string) => (await readLog(url, 'channel-')).filter(isOf);
  const others = new Set((await logOf(eventstoreUrl)).map(requestOf));
  const load = startInteractionLoad({
    endpoints: [[httpEndpoint(api)]],
    channels: [...channels],
    writers: 6,
    seed: SEED,
  });
  return {
    ...load,
    isOf,
    async expectSound(url: string): Promise<void> {
      const log = await logOf(url);
      expect(writeProblems(load.records, log, others)).toEqual([]);
      // An incomplete one is shown when it is complete.
      const posted = log.filter(({ type, data }) => type === 'InteractionPosted.v1' && data['complete'] === true);
      expect(posted.length).toBeGreaterThan(0);
      for (const { stream, revision } of posted) {
        const id = interactionId({
          channelId: stream.slice('channel-'.length),
          sequence: sequenceOf(streamRevision(revision)),
        });
        expect((await api.get(`/api/v1/interactions/${id}`)).status).toBe(200);
      }
    },
  };
}

/** Lasts until callers give up appends that the event store has received and writes later. */
async function silence(store: { pause(): void }): Promise<void> {
  await store.pause();
  await delay(4_500);
}

async function killPrivateRedis(parley: ParleyProcess): Promise<void> {
  const folder = join(parley.dataDir, 'redis');
  for (const pid of await redisProcessesIn(folder)) process.kill(pid, 'SIGKILL');
}
