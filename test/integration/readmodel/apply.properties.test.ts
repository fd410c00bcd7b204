/**
 * Whatever two gateways were asked, and whatever became of Redis: what is read is a plain fold of the log. When a
 * property fails, the seed and the smallest history that was found are printed.
 */
import { setTimeout as delay } from 'node:timers/promises';

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { channelProjection } from '#libs/features/channels/index.ts';
import { foldEvents } from '#libs/kernel/decider.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { READ_MODELS_PREFIX, ReadModel } from '#libs/platform/readmodel/index.ts';
import type { ApplyOutcome, EntityWrite } from '#libs/platform/readmodel/read-model.ts';
import { connectRedis, type RedisClient, waitForRedis } from '#libs/platform/redis/index.ts';
import { composeFeatures, composeReadModels, type Features, type ReadModels } from '#services/features.ts';
import { foldedChannel, readChannel } from '#test/support/channel-views.ts';
import {
  commandHistories,
  type CommandHistory,
  type PlayedChannel,
  playHistory,
} from '#test/support/command-history.ts';
import { streamOf } from '#test/support/past.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';
import { flush, keysIn, nodeWith } from '#test/support/redis-commands.ts';
import { rounds, roundsTimeoutMs } from '#test/support/rounds.ts';

let test: TestPlatform;
let gateways: readonly [Features, Features];
let projectors: readonly [ReadModels, ReadModels];
let late: LateReadModel;

beforeAll(async () => {
  test = await startTestPlatform();
  const redis = connectRedis(test.redis.url);
  await waitForRedis(redis, 60_000);
  late = new LateReadModel(redis);
  gateways = [composeFeatures(test.platform), composeFeatures({ ...test.platform, redis, readModel: late })];
  projectors = [composeReadModels(test.platform), composeReadModels(test.platform)];
});
afterAll(async () => {
  late.redis.close();
  await test.stop();
});

/** That of a gateway that takes its time between append and apply, so that others apply what comes after it. */
class LateReadModel extends ReadModel {
  readonly redis: RedisClient;
  byMs = 0;

  constructor(redis: RedisClient) {
    super(redis);
    this.redis = redis;
  }

  override async apply(writes: readonly EntityWrite[]): Promise<ApplyOutcome[]> {
    if (this.byMs > 0) await delay(this.byMs);
    return super.apply(writes);
  }
}

/** Milliseconds; an append and an apply take about one. */
const lateness = fc.constantFrom(0, 10);

/** Without a limit of time: a history that fast-check interrupts plays on beside the next test, on the same Redis. */
const RUNS = { numRuns: rounds(10) };
const TIMEOUT_MS = roundsTimeoutMs(600_000);

/** Plays a history on an empty Redis; the log of earlier histories is other channels'. */
async function play(history: CommandHistory) {
  late.byMs = 0;
  await flush(test.platform.redis);
  const { channels } = await playHistory(gateways, history);
  const live = await dumpReadModels(test.platform.redis);
  return { channels, live };
}

describe('what two gateways were asked on the same channels', () => {
  it(
    'is read as a plain fold of the log has it, each command once',
    async () => {
      let [events, refused] = [0, 0];
      await fc.assert(
        fc.asyncProperty(commandHistories(), lateness, async (history, byMs) => {
          late.byMs = byMs;
          const played = await playHistory(gateways, history);
          refused += played.refused;
          for (const channel of played.channels) {
            const log = await streamOf(test.platform.store, `channel-${channel.channelId}`);
            events += log.length;
            const spans = log.flatMap(({ data }) => (typeof data['spanId'] === 'string' ? [data['spanId']] : []));
            expect(new Set(spans).size).toBe(spans.length);
            expect(new Set(log.map(({ id }) => id)).size).toBe(log.length);
            expect(await readChannel(gateways[1], channel, spans)).toEqual(foldedChannel(channel, log, spans));
          }
        }),
        RUNS,
      );
      // Histories of refusals, or of nothing, would prove nothing.
      expect(events).toBeGreaterThan(RUNS.numRuns * 5);
      expect(refused).toBeGreaterThan(RUNS.numRuns);
    },
    TIMEOUT_MS,
  );
});

async function logOf(channels: readonly PlayedChannel[]): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (const { channelId } of channels) {
    for await (const event of test.platform.store.readStream(`channel-${channelId}`)) events.push(event);
  }
  return events.sort((a, b) => a.createdMs - b.createdMs || Number(a.revision) - Number(b.revision));
}

async function apply(
  { projector }: ReadModels,
  log: readonly StoredEvent[],
  { batch, repairLists = false }: { readonly batch: number; readonly repairLists?: boolean },
): Promise<void> {
  for (let at = 0; at < log.length; at += batch) {
    await projector.applyStored(log.slice(at, at + batch), { repairLists });
  }
}

const batch = fc.integer({ min: 1, max: 60 });
/** Some part of the log, perhaps one that was delivered before, perhaps with others missing before it. */
const delivery = fc.record({ start: fc.nat(), length: fc.integer({ min: 1, max: 40 }), repairLists: fc.boolean() });

describe('applying the events of a random history', () => {
  it(
    'gives the same, whatever parts of the log came before, in whatever order, however often',
    async () => {
      await fc.assert(
        fc.asyncProperty(
          commandHistories(),
          fc.array(delivery, { maxLength: 12 }),
          batch,
          async (history, deliveries, size) => {
            const { channels, live } = await play(history);
            const log = await logOf(channels);
            await flush(test.platform.redis);
            for (const { start, length, repairLists } of deliveries) {
              const from = start % log.length;
              await projectors[0].projector.applyStored(log.slice(from, from + length), { repairLists });
            }
            await apply(projectors[0], log, { batch: size });
            expect(await dumpReadModels(test.platform.redis)).toEqual(live);
          },
        ),
        RUNS,
      );
    },
    TIMEOUT_MS,
  );

  it(
    'gives the same when two processes do it at once, and when it was done before',
    async () => {
      await fc.assert(
        fc.asyncProperty(commandHistories(), batch, batch, fc.boolean(), async (history, mine, theirs, isEmpty) => {
          const { channels, live } = await play(history);
          const log = await logOf(channels);
          if (isEmpty) await flush(test.platform.redis);
          await Promise.all([
            apply(projectors[0], log, { batch: mine }),
            apply(projectors[1], log, { batch: theirs, repairLists: true }),
          ]);
          expect(await dumpReadModels(test.platform.redis)).toEqual(live);
        }),
        RUNS,
      );
    },
    TIMEOUT_MS,
  );
});

/** What a gateway applies right after its append, without a look at what the read model has. */
async function appendedRuns({ organizationId, channelId }: PlayedChannel, size: number) {
  const log = await logOf([{ organizationId, channelId }]);
  const events = log.map((stored) => channelProjection.codec.decode(stored)).filter((event) => event !== null);
  let before = channelProjection.fold.initialState;
  return Array.from({ length: Math.ceil(events.length / size) }, (_, index) => {
    const [first, ...later] = events.slice(index * size, (index + 1) * size);
    if (first === undefined) throw new TypeError('a run without an event');
    const run = { organizationId, id: channelId, before, events: [first, ...later] as const };
    before = foldEvents(channelProjection.fold, before, run.events);
    return { ...run, after: before };
  });
}

describe('what gateways have appended', () => {
  it(
    'makes the same read models, in whatever order they come to apply it, at once or not',
    async () => {
      const order = fc.infiniteStream(fc.nat({ max: 1_000 }));
      await fc.assert(
        fc.asyncProperty(
          commandHistories(),
          fc.integer({ min: 1, max: 8 }),
          order,
          fc.boolean(),
          async (history, size, places, atOnce) => {
            const { channels, live } = await play(history);
            const runs = (await Promise.all(channels.map((channel) => appendedRuns(channel, size)))).flat();
            const shuffled = runs
              .map((run) => ({ run, place: places.next().value ?? 0 }))
              .sort((one, other) => one.place - other.place);
            await flush(test.platform.redis);
            const applying: Promise<void>[] = [];
            for (const { run, place } of shuffled) {
              const { projector } = projectors[place % 2] ?? projectors[0];
              applying.push(projector.applyAppended(channelProjection, run));
              if (!atOnce) await applying.at(-1);
            }
            await Promise.all(applying);
            expect(await dumpReadModels(test.platform.redis)).toEqual(live);
          },
        ),
        RUNS,
      );
    },
    TIMEOUT_MS,
  );
});

/** What a shard of Redis holds of one entity or list: they are lost apart from each other, each as a whole. */
type Kept = ReadonlyMap<string, Buffer>;

async function keep(): Promise<Kept> {
  const { redis } = test.platform;
  const keys = await keysIn(redis, `${READ_MODELS_PREFIX}*`);
  const dumps = await Promise.all(keys.map((key) => nodeWith(redis, key).dumpBuffer(key)));
  return new Map(keys.map((key, index) => [key, dumps[index] ?? Buffer.alloc(0)]));
}

const ownerOf = (key: string): string => /^.*\}:/.exec(key)?.[0] ?? key;

/** A Redis that has each entity and each list as of some earlier moment, which differ. */
async function setBack(moments: readonly Kept[], picks: readonly number[]): Promise<void> {
  const { redis } = test.platform;
  const owners = [...new Set(moments.flatMap((moment) => [...moment.keys()].map(ownerOf)))].sort();
  await flush(redis);
  for (const [index, owner] of owners.entries()) {
    const moment = moments[(picks[index % picks.length] ?? 0) % moments.length] ?? new Map<string, Buffer>();
    for (const [key, dump] of moment) if (ownerOf(key) === owner) await nodeWith(redis, key).restore(key, 0, dump);
  }
}

describe('a Redis that has lost its newest writes', () => {
  const picks = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 8 });

  it(
    'has all of them again once two processes have gone through the log, whatever was lost',
    async () => {
      await fc.assert(
        fc.asyncProperty(commandHistories(), picks, batch, batch, async (history, lost, mine, theirs) => {
          const { channels, live } = await play(history);
          const log = await logOf(channels);
          await flush(test.platform.redis);
          const moments = [await keep()];
          for (const part of [0, 1, 2]) {
            const third = Math.ceil(log.length / 3);
            await apply(projectors[0], log.slice(part * third, (part + 1) * third), { batch: mine });
            moments.push(await keep());
          }
          await setBack(moments, lost);
          await Promise.all([
            apply(projectors[0], log, { batch: mine, repairLists: true }),
            apply(projectors[1], log, { batch: theirs, repairLists: true }),
          ]);
          expect(await dumpReadModels(test.platform.redis)).toEqual(live);
        }),
        RUNS,
      );
    },
    TIMEOUT_MS,
  );

  it(
    'has all of an entity again at its next event',
    async () => {
      await fc.assert(
        fc.asyncProperty(commandHistories(), fc.double({ min: 0, max: 1, noNaN: true }), async (history, part) => {
          const { channels, live } = await play(history);
          const log = await logOf(channels);
          await flush(test.platform.redis);
          await apply(projectors[0], log.slice(0, Math.floor(log.length * part)), { batch: 20 });
          const newest = new Map(log.map((event) => [event.stream, event]));
          await projectors[0].projector.applyStored([...newest.values()]);
          expect(await dumpReadModels(test.platform.redis)).toEqual(live);
        }),
        RUNS,
      );
    },
    TIMEOUT_MS,
  );
});
