import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { composeFeatures, composeReadModels } from '#services/features.ts';
import type { ReadModels } from '#services/features.ts';
import { playChannels } from '#test/support/channel-history.ts';
import { playInteractions } from '#test/support/interaction-history.ts';
import { startTestPlatform } from '#test/support/platform.ts';
import type { TestPlatform } from '#test/support/platform.ts';
import { dumpReadModels } from '#test/support/read-model-dump.ts';

let test: TestPlatform;
let models: ReadModels;
let log: StoredEvent[];
let live: Record<string, unknown>;

beforeAll(async () => {
  test = await startTestPlatform();
  models = composeReadModels(test.platform);
  const features = composeFeatures(test.platform);
  await playChannels(features.channels.commands, { seed: 3, commands: 150 });
  await playInteractions([features, composeFeatures(test.platform)], { seed: 3, commands: 90 });
  live = await dumpReadModels(test.platform.redis);
  log = await readLog();
  expect(log.length).toBeGreaterThan(60);
});
afterAll(() => test.stop());

async function readLog(): Promise<StoredEvent[]> {
  const abort = new AbortController();
  const events: StoredEvent[] = [];
  const streamPrefixes = models.projector.streamPrefixes;
  for await (const item of test.platform.feed.subscribe({ from: 'start', streamPrefixes, signal: abort.signal })) {
    if (item.kind === 'events') events.push(...item.events);
    if (item.kind === 'caught-up') break;
  }
  abort.abort();
  return events;
}

/** A delivery: some part of the log, perhaps one that was delivered before, perhaps with others missing before it. */
const deliveries = fc.array(
  fc.record({ start: fc.nat(), length: fc.integer({ min: 1, max: 40 }), repairLists: fc.boolean() }),
  { maxLength: 12 },
);

describe('applying events to the read models', () => {
  it('gives the same, whatever parts of the log came before, in whatever order, however often', async () => {
    await fc.assert(
      fc.asyncProperty(deliveries, fc.integer({ min: 1, max: 60 }), async (parts, batch) => {
        await test.platform.redis.flushall();
        for (const { start, length, repairLists } of parts) {
          const from = start % log.length;
          await models.projector.applyStored(log.slice(from, from + length), { repairLists });
        }
        for (let at = 0; at < log.length; at += batch) await models.projector.applyStored(log.slice(at, at + batch));
        expect(await dumpReadModels(test.platform.redis)).toEqual(live);
      }),
      { numRuns: 30 },
    );
  });

  it('gives the same when two processes do it at once', async () => {
    const other = composeReadModels(test.platform);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 60 }), async (mine, theirs) => {
        await test.platform.redis.flushall();
        const run = async ({ projector }: ReadModels, batch: number): Promise<void> => {
          for (let at = 0; at < log.length; at += batch) await projector.applyStored(log.slice(at, at + batch));
        };
        await Promise.all([run(models, mine), run(other, theirs)]);
        expect(await dumpReadModels(test.platform.redis)).toEqual(live);
      }),
      { numRuns: 15 },
    );
  });

  it('heals a Redis that lost its newest writes at the next event of each channel', async () => {
    await test.platform.redis.flushall();
    const half = Math.floor(log.length / 2);
    await models.projector.applyStored(log.slice(0, half));
    const newest = [...new Map(log.map((event) => [event.stream, event])).values()];
    await models.projector.applyStored(newest);
    expect(await dumpReadModels(test.platform.redis)).toEqual(live);
  });
});
