/*
 * A whole deployment under load while all its parts are killed, paused and replaced. Afterwards every acknowledged
 * write is in the log once and in order, all reads are folds of the log, every socket has received its exact suffix,
 * and Kafka holds all of it. DEPLOYMENT_ROUNDS sets the length, DEPLOYMENT_SEED the choices; KAFKA_AWAY_MS stops the
 * broker for so long in the middle.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '#libs/kernel/ids.ts';
import { LogMessages, logTopics } from '#libs/platform/kafka/index.ts';
import { ReadModel } from '#libs/platform/readmodel/index.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/index.ts';
import { openPlatform, type Platform } from '#libs/platform/runtime/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { composeFeatures, composeReadModels } from '#services/features.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import type { ApiClient } from '#test/support/api-client.ts';
import { randomFrom } from '#test/support/channel-history.ts';
import { startChannelLoad } from '#test/support/channel-load.ts';
import { foldedChannel, readChannel } from '#test/support/channel-views.ts';
import { PLAIN_CHANNEL, serviceCommand } from '#test/support/commands.ts';
import type { PlayedChannel } from '#test/support/command-history.ts';
import { startDeployment, type Deployment } from '#test/support/deployment.ts';
import { eventually } from '#test/support/eventually.ts';
import { problemsOf } from '#test/support/history-checker.ts';
import { withEventTwice, withoutEvent, withSwapped } from '#test/support/history-doctor.ts';
import { playHistories } from '#test/support/history-player.ts';
import { httpEndpoint, startInteractionLoad } from '#test/support/interaction-load.ts';
import { KAFKA_START_MS } from '#test/support/kafka/broker.ts';
import { describeGroup, groupProblems } from '#test/support/kafka/group.ts';
import { topicProblems } from '#test/support/kafka/topic-checker.ts';
import { readEvents } from '#test/support/kafka/topic-reader.ts';
import { asRecord, readLog, type LogEvent } from '#test/support/log-reader.ts';
import { dealt, failuresOf } from '#test/support/failures.ts';
import { observe } from '#test/support/observation.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { newChannel } from '#test/support/realtime/nodes.ts';
import { problemsOf as frameProblems } from '#test/support/realtime/sequence-checker.ts';
import {
  cutAtRandom,
  expectedLogs,
  INCLUDES,
  nameOf,
  plantedFaults,
  receivedBy,
  startSockets,
} from '#test/support/realtime/sockets.ts';
import { startTestRedis } from '#test/support/redis.ts';
import { newTenant } from '#test/support/tenants.ts';
import { composeUnapplied, unappliedEndpoint } from '#test/support/unapplied-writer.ts';
import { writeProblems } from '#test/support/write-checker.ts';

const ROUNDS = Number(process.env['DEPLOYMENT_ROUNDS'] ?? 4);
const SEED = Number(process.env['DEPLOYMENT_SEED'] ?? 1);
const KAFKA_AWAY_MS = Number(process.env['KAFKA_AWAY_MS'] ?? 0);
const IS_LONG = ROUNDS > 4;
const SOCKETS = 96;
const LOG_PARTITIONS = 12;
/** Timeouts only end a hang: on a busy machine, a process takes a minute to start. */
const HANG_TIMEOUT = { timeoutMs: 240_000, everyMs: 100 };
const ROUND_MS = 300_000;

let deployment: Deployment;
let platform: Platform;

beforeAll(async () => {
  deployment = await startDeployment();
  const { eventStore, redis, tokenSecret } = deployment;
  platform = await openPlatform({
    eventstoreUrl: eventStore.url,
    redisUrl: redis.url,
    log: pino({ level: 'silent' }),
    metrics: createMetrics({ processMetrics: false }),
    tokenSecret,
  });
}, KAFKA_START_MS);
afterAll(async () => {
  await platform?.close();
  await deployment?.stop();
});

/** Runs only on request (`npm run test:deployment`): it takes minutes where its processes share two cores. */
const isWanted = process.env['DEPLOYMENT_ROUNDS'] !== undefined;

describe.runIf(isWanted)('a deployment of two gateways, two realtime nodes, three projectors and two relays', () => {
  it(
    'loses, duplicates and reorders nothing, whichever of its parts are killed, paused, replaced or emptied',
    async () => {
      const load = await startLoad();
      // Some sockets begin at the eleventh event: a socket that asks for an event that does not exist yet is closed
      // for good.
      await eventually(async () => {
        const streams = Map.groupBy(await eventsOf(load.channels), ({ stream }) => stream);
        return streams.size === load.channels.length && [...streams.values()].every((events) => events.length > 11);
      }, HANG_TIMEOUT);
      const sockets = startSockets({
        count: SOCKETS,
        channels: load.channels,
        nodes: load.realtime,
        tickets: load.tenantClients,
      });
      const begun = new Map(sockets.map((socket) => [socket, socket.cursor]));
      try {
        await eventually(() => sockets.every(({ cursor }) => cursor !== undefined), HANG_TIMEOUT);
        const cuts = cutAtRandom(sockets, { seed: SEED, everyMs: 600 });
        await allHappens(load);
        await cuts.stop();
        await projectorsShareTheWork();
        await load.stop();
        await projectorsHaveCaughtUp();

        // Before any read over REST, which would bring the read models up to date.
        expect(await readModelsBesideTheLog()).toEqual([]);
        const log = await readLog(deployment.eventStore.url, '');
        await expectWrites(load, log);
        await expectFoldOfTheLog(load, log);
        await expectKafkaToHold(log);
        await expectSockets(sockets, begun, load);
      } finally {
        await load.stop();
        await Promise.all(sockets.map((socket) => socket.stop()));
      }
    },
    (ROUNDS + 3) * ROUND_MS + KAFKA_AWAY_MS,
  );
});

type Load = Awaited<ReturnType<typeof startLoad>>;

async function startLoad() {
  const { gateways, realtime } = deployment;
  const tenant = await newTenant(gateways[0].api);
  const tenantClients = deployment.withKey(tenant.key);
  const channels = await Promise.all([0, 1, 2, 3].map((n) => newChannel(tenantClients[n % 2] ?? tenant.api)));
  // Before the writers begin: the current events of these channels are not theirs.
  const others = new Set((await eventsOf(channels)).map(({ metadata }) => String(metadata['$correlationId'])));
  const unapplied = composeUnapplied(platform);
  const interactions = startInteractionLoad({
    endpoints: [tenantClients.map(httpEndpoint), [unappliedEndpoint(unapplied, tenant.organizationId, tenant.userId)]],
    channels: [channels[0] ?? '', ...channels.slice(1)],
    writers: 6,
    seed: SEED,
    thinkMs: 60,
  });
  const clients = [gateways[0].api, gateways[1].api] as const;
  const channelLoad = startChannelLoad({ clients, writers: 3, seed: SEED, thinkMs: 100 });
  // Another process has to apply what the first of them appends.
  const histories = [
    playHistories([unapplied, composeUnapplied(platform)], { seed: SEED, pauseMs: 600 }),
    playHistories([composeFeatures(platform), unapplied], { seed: SEED + 1_000, pauseMs: 600 }),
  ];
  let stopped: Promise<unknown> | undefined;
  return {
    tenant,
    tenantClients,
    realtime: [realtime[0].api.withKey(tenant.key), realtime[1].api.withKey(tenant.key)] as const,
    channels,
    others,
    interactions,
    channelLoad,
    histories,
    acknowledged: () => interactions.acknowledged() + channelLoad.acknowledged(),
    stop: () =>
      (stopped ??= Promise.all([
        interactions.stop(10_000),
        channelLoad.stop(10_000),
        ...histories.map((player) => player.stop()),
      ])),
  };
}

const eventsOf = async (channels: readonly string[]): Promise<LogEvent[]> =>
  (await readLog(deployment.eventStore.url, 'channel-')).filter(({ stream }) =>
    channels.includes(stream.slice('channel-'.length)),
  );

/** Each round several failures happen at once, and then writes must succeed again. */
async function allHappens(load: Load): Promise<void> {
  const random = randomFrom(SEED);
  const failures = failuresOf(deployment, IS_LONG ? 9_000 : 1_500);
  await writesGetThrough(load, 'at first');
  for (const [index, round] of dealt(failures, { rounds: ROUNDS, width: IS_LONG ? 3 : 7, random }).entries()) {
    const names = round.map(({ name }) => name).join(', ');
    process.stderr.write(`${index + 1}: ${names}\n`);
    await Promise.all(round.map((failure) => failure.happen(random)));
    await writesGetThrough(load, `after ${names}`);
    if (KAFKA_AWAY_MS > 0 && index === Math.floor(ROUNDS / 2)) await kafkaIsAway(load);
    for (const one of processes()) if (!one.alive()) throw new Error(`a process has ended by itself: ${one.output()}`);
  }
}

/** Minutes without a broker: every gateway reports that it is ready, and writes succeed. */
async function kafkaIsAway(load: Load): Promise<void> {
  const { kafka, gateways, realtime } = deployment;
  await kafka.kill9();
  const end = Date.now() + KAFKA_AWAY_MS;
  while (Date.now() < end) {
    await writesGetThrough(load, 'while Kafka is away');
    // A check that was late on a busy machine is repeated.
    for (const process of [...gateways, ...realtime]) await process.ready();
    await delay(1_000);
  }
  await kafka.restart();
}

const processes = () => [
  ...deployment.gateways,
  ...deployment.realtime,
  ...deployment.projectors,
  ...deployment.relays,
];

async function writesGetThrough(load: Load, when: string): Promise<void> {
  const before = load.acknowledged();
  await eventually(() => load.acknowledged() > before + 20, HANG_TIMEOUT).catch(() => {
    throw new Error(`no writes succeeded ${when}`);
  });
}

/**
 * With everything running again, each projector has partitions, and applies some events of many channels that no
 * other process applies.
 */
async function projectorsShareTheWork(): Promise<void> {
  const { projectors } = deployment;
  await Promise.all(projectors.map((projector) => eventually(() => projector.ready(), HANG_TIMEOUT)));
  await eventually(projectorsAreAGroup, HANG_TIMEOUT);
  const seen = () => Promise.all(projectors.map(({ api }) => eventsSeen(api)));
  const before = await seen();
  const unapplied = composeUnapplied(platform);
  const organizationId = newId();
  for (let n = 0; n < 60; n++) {
    await unapplied.channels.create(serviceCommand(organizationId), { ...PLAIN_CHANNEL, id: newId() });
  }
  await eventually(async () => {
    for (const [index, count] of (await seen()).entries()) expect(count).toBeGreaterThan(before[index] ?? Infinity);
  }, HANG_TIMEOUT);
}

/** By the broker and by their own reports: a projector with a feed of its own would apply everything. */
async function projectorsAreAGroup(): Promise<void> {
  const { kafka, projectors } = deployment;
  const { projectorGroup, log } = logTopics('parley');
  const wanted = { members: projectors.length, partitions: LOG_PARTITIONS };
  const group = await describeGroup(kafka.brokers, projectorGroup, log);
  expect(groupProblems(group, wanted)).toEqual([]);
  const [first, ...others] = group.members;
  const planted = groupProblems({ ...group, members: others }, wanted).join('\n');
  expect(planted).toMatch(/^members: .*\n/);
  expect(planted).toMatch(/^unassigned/m);
  const duplicated = groupProblems({ ...group, members: [...others, ...(first ? [first, first] : [])] }, wanted);
  expect(duplicated.join('\n')).toMatch(/^duplicate/m);

  const held = await Promise.all(projectors.map(({ api }) => heldPartitions(api)));
  expect(held.map((partitions) => partitions.join()).sort()).toEqual(
    group.members.map(({ partitions }) => partitions.join()).sort(),
  );
}

/** @throws Error while it reads the log itself */
async function heldPartitions(api: ApiClient): Promise<readonly number[]> {
  const { text } = await api.get('/health/ready');
  const { projection } = asRecord(asRecord(JSON.parse(text))['checks']);
  const { feed, partitions } = asRecord(asRecord(projection)['detail']);
  if (feed !== 'kafka') throw new Error(`a projector reads ${String(feed)}`);
  return Object.keys(asRecord(partitions))
    .map(Number)
    .sort((a, b) => a - b);
}

async function eventsSeen(api: ApiClient): Promise<number> {
  const [, count] = /^parley_projector_events_seen_total (\d+)$/m.exec((await api.get('/metrics')).text) ?? [];
  if (count === undefined) throw new TypeError('a projector that does not count its events');
  return Number(count);
}

async function projectorsHaveCaughtUp(): Promise<void> {
  await eventually(async () => {
    for (const { api } of deployment.projectors) {
      const { status, text } = await api.get('/health/ready');
      if (status !== 200 || !text.includes('"caught_up":true')) throw new Error(`not caught up: ${text}`);
    }
  }, HANG_TIMEOUT);
}

/**
 * Differences between Redis and the read models that a projector builds of the same log in an empty Redis, byte for
 * byte.
 */
async function readModelsBesideTheLog(): Promise<string[]> {
  const other = await startTestRedis();
  const redis = connectRedis(other.url);
  try {
    await waitForRedis(redis, 60_000);
    const models = composeReadModels({ ...platform, redis, readModel: new ReadModel(redis) });
    await rebuild({ feed: platform.feed, ...models }, { signal: AbortSignal.timeout(240_000) });
    const folded = await dumpReadModels(redis);
    // The check on these very read models: it finds one that lacks its newest event.
    const key = Object.keys(folded).find((name) => name.endsWith('revision')) ?? '';
    expect(differences({ ...folded, [key]: 'planted' }, folded)).toHaveLength(1);
    // An abandoned request may finish only now.
    let found: string[] = [];
    await eventually(async () => {
      found = differences(await dumpReadModels(platform.redis), folded);
      return found.length === 0;
    }, HANG_TIMEOUT).catch(() => undefined);
    return found;
  } finally {
    redis.close();
    await other.stop();
  }
}

function differences(one: Record<string, unknown>, other: Record<string, unknown>): string[] {
  const names = [...new Set([...Object.keys(one), ...Object.keys(other)])];
  const differ = names.filter((name) => JSON.stringify(one[name]) !== JSON.stringify(other[name]));
  return differ.map((name) => {
    const shown = [one[name], other[name]].map((value) => String(JSON.stringify(value)).slice(0, 300));
    return `${name}: ${shown.join(' instead of ')}`;
  });
}

/** Acknowledged writes are in the log, once and in order, and REST shows the channels as the log has them. */
async function expectWrites(load: Load, log: readonly LogEvent[]): Promise<void> {
  const { interactions, channels, others, channelLoad, histories } = load;
  const own = log.filter(({ stream }) => channels.includes(stream.slice('channel-'.length)));
  expect(writeProblems(interactions.records, own, others)).toEqual([]);
  const index = own.findLastIndex(({ type }) => type === 'InteractionPosted.v1');
  const former = own.findIndex(({ type, stream }) => type === 'InteractionPosted.v1' && stream === own[index]?.stream);
  const planted = (doctored: readonly LogEvent[]) => writeProblems(interactions.records, doctored, others).join('\n');
  expect(planted(withoutEvent(own, index))).toMatch(/^lost/m);
  expect(planted(withEventTwice(own, index))).toMatch(/^twice/m);
  expect(planted(withSwapped(own, former, index))).toMatch(/^reordered/m);

  const { eventStore, gateways, projectors } = deployment;
  const created = new Set(channelLoad.operations.flatMap(({ attempts }) => attempts.map(({ requestId }) => requestId)));
  for (const gateway of gateways) {
    const observation = await observe(channelLoad.operations, {
      eventstoreUrl: eventStore.url,
      api: projectors[0].api,
      readWith: gateway.api,
      isOwn: ({ metadata }) => created.has(String(metadata['$correlationId'])),
    });
    expect(problemsOf(observation)).toEqual([]);
  }
  // The run must have been significant.
  const kinds = new Set(interactions.records.map(({ write }) => write.kind));
  expect([...kinds].sort()).toEqual(
    ['append', 'complete', 'dismiss', 'fail', 'join', 'post', 'react', 'receipt', 'rename', 'withdraw'].sort(),
  );
  expect(load.acknowledged()).toBeGreaterThan(ROUNDS * 40);
  expect(histories.flatMap((player) => player.channels).length).toBeGreaterThan(5);
}

/** Channels and all their contents equal a plain fold. */
async function expectFoldOfTheLog({ tenant, channels, histories }: Load, log: readonly LogEvent[]): Promise<void> {
  const features = composeFeatures(platform);
  const played: PlayedChannel[] = histories.flatMap((player) => player.channels);
  played.push(...channels.map((channelId) => ({ organizationId: tenant.organizationId, channelId })));
  const streams = Map.groupBy(log, ({ stream }) => stream);
  for (const channel of played) {
    const events = streams.get(`channel-${channel.channelId}`) ?? [];
    const spans = events.flatMap(({ data }) => (typeof data['spanId'] === 'string' ? [data['spanId']] : []));
    expect(new Set(spans).size).toBe(spans.length);
    const looked = spans.slice(0, 40);
    // The user who dismissed prompts there.
    const reader = channels.includes(channel.channelId) ? tenant.userId : undefined;
    expect(await readChannel(features, channel, looked, reader)).toEqual(foldedChannel(channel, events, looked));
  }
  expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
}

async function expectKafkaToHold(log: readonly LogEvent[]): Promise<void> {
  const { kafka, tokenSecret } = deployment;
  const wanted = log.filter(({ stream }) => !stream.startsWith('$'));
  const relayed = await eventually(async () => {
    const events = await readEvents(kafka.brokers, logTopics('parley').log, new LogMessages(tokenSecret));
    const ids = new Set(events.map(({ id }) => id));
    if (wanted.some(({ id }) => !ids.has(id))) throw new Error(`${ids.size} of ${wanted.length} events were relayed`);
    return events;
  }, HANG_TIMEOUT);
  const messages = relayed.map(({ stream, revision, id, type, data, metadata }): LogEvent => ({
    stream,
    revision,
    id,
    type,
    data: asRecord(data),
    metadata: asRecord(metadata),
  }));
  expect(topicProblems(messages, wanted)).toEqual([]);

  // The checker on this very topic: it finds every planted fault.
  const last = messages.findLastIndex(({ revision }) => revision > 0);
  const { stream, revision, id } = messages[last] ?? {};
  const before = messages.findIndex((one) => one.stream === stream && one.revision + 1 === revision);
  const planted = (doctored: readonly LogEvent[]) => topicProblems(doctored, wanted).join('\n');
  expect(planted(messages.filter((one) => one.id !== id))).toMatch(/^missing/m);
  const once = [...new Map(messages.toReversed().map((one) => [one.id, one])).values()].toReversed();
  const [a, b] = [before, last].map((at) => once.findIndex((one) => one.id === messages[at]?.id));
  expect(planted(withPlacesChanged(once, a ?? 0, b ?? 0))).toMatch(/^reordered/m);
  expect(planted(messages.map((one) => (one.id === id ? { ...one, data: {} } : one)))).toMatch(/^altered/m);
}

function withPlacesChanged<T>(items: readonly T[], one: number, other: number): T[] {
  return items.map((item, at) => (at === one ? items[other] : at === other ? items[one] : item) ?? item);
}

async function expectSockets(
  sockets: ReturnType<typeof startSockets>,
  begun: ReadonlyMap<(typeof sockets)[number], number | undefined>,
  load: Load,
): Promise<void> {
  const [node] = load.realtime;
  const [tickets] = load.tenantClients;
  const eventstoreUrl = deployment.eventStore.url;
  const { logs, problems } = await expectedLogs({ node, tickets, eventstoreUrl }, load.channels);
  expect(problems).toEqual([]);
  const ends = new Map(load.channels.map((channel) => [channel, logs.get('plain')?.get(channel)?.length ?? 0]));
  const behind = () => sockets.filter(({ channelId, cursor = 0 }) => cursor < (ends.get(channelId) ?? 0));
  await eventually(() => behind().length === 0, HANG_TIMEOUT).catch(() => undefined);
  for (const include of INCLUDES) {
    const received = receivedBy(sockets, include, begun);
    const expected = { logs: logs.get(nameOf(include)) ?? new Map() };
    expect(frameProblems(received, expected)).toEqual([]);
    for (const [kind, found] of Object.entries(plantedFaults(received, expected))) expect(found).toContain(kind);
  }
  for (const { baseUrl } of deployment.realtime) {
    expect(sockets.some(({ sessions }) => sessions.some(({ node: served }) => served === baseUrl))).toBe(true);
  }
}
