import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { GlobalPosition } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { LogFeed, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { ALL_PROJECTION_KEYS } from '#test/support/projection-keys.ts';
import { composeFeatures, composeReadModels, type ReadModels } from '#services/features.ts';
import { ProjectionLoop } from '#services/projector/projection-loop.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { applying } from '#test/support/applying-projector.ts';
import { eventually } from '#test/support/eventually.ts';
import { playChannels } from '#test/support/channel-history.ts';
import { commandHistories, playHistory } from '#test/support/command-history.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import { digestOfDump, dumpReadModels } from '#test/support/read-model-dump.ts';
import { flush, keysIn } from '#test/support/redis-commands.ts';

let test: TestPlatform;
let models: ReadModels;
let live: Record<string, unknown>;

beforeAll(async () => {
  test = await startTestPlatform();
  models = composeReadModels(test.platform);
  const features = composeFeatures(test.platform);
  await playChannels(features.channels, { seed: 7, commands: 400 });
  for (const history of fc.sample(commandHistories({ minSteps: 50 }), { seed: 7, numRuns: 3 })) {
    await playHistory([features, composeFeatures(test.platform)], history);
  }
  live = await dumpReadModels(test.platform.redis);
  expect(Object.keys(live).length).toBeGreaterThan(50);
});
afterAll(() => test.stop());

function runLoop(maxBatch?: number): { loop: ProjectionLoop; stop(): Promise<void> } {
  const abort = new AbortController();
  const loop = new ProjectionLoop({
    feed: test.platform.feed,
    ...models,
    onProblem: () => undefined,
    ...(maxBatch !== undefined && { maxBatch }),
  });
  const ended = loop.run(abort.signal);
  return {
    loop,
    stop: async () => {
      abort.abort();
      await ended;
    },
  };
}

describe('a rebuild of the read models', () => {
  for (const maxBatch of [1, 7, 500]) {
    it(`equals the live state byte for byte, ${maxBatch} events at a time`, async () => {
      const events = await rebuild(
        { feed: test.platform.feed, ...models },
        { maxBatch, signal: AbortSignal.timeout(60_000) },
      );
      expect(events).toBeGreaterThan(100);
      expect(digestOfDump(await dumpReadModels(test.platform.redis))).toBe(digestOfDump(live));
    });
  }

  it('that was interrupted is finished by the next projector', async () => {
    const abort = new AbortController();
    const cutShort = rebuild(
      { feed: test.platform.feed, ...models },
      { maxBatch: 1, signal: abort.signal, onProgress: ({ events }) => events >= 40 && abort.abort() },
    );
    await expect(cutShort).rejects.toThrow();
    expect(await models.state.isComplete()).toBe(false);
    expect(digestOfDump(await dumpReadModels(test.platform.redis))).not.toBe(digestOfDump(live));
    const { loop, stop } = runLoop();
    await eventually(() => loop.progress.phase === 'live');
    await stop();
    expect(await dumpReadModels(test.platform.redis)).toEqual(live);
  });

  it('under a running projector is noticed and followed by it', async () => {
    const { loop, stop } = runLoop();
    await eventually(() => loop.progress.phase === 'live');
    await models.state.clear();
    await eventually(async () => (await models.state.isComplete()) && loop.progress.phase === 'live');
    expect(await dumpReadModels(test.platform.redis)).toEqual(live);
    await stop();
  });

  it('repairs list entries that were lost while their channels survived', async () => {
    const lists = Object.keys(live).filter((key) => key.includes(':list:'));
    expect(lists.length).toBeGreaterThan(2);
    await test.platform.redis.remove([...lists, ...ALL_PROJECTION_KEYS]);
    const { loop, stop } = runLoop();
    await eventually(() => loop.progress.phase === 'live');
    await stop();
    expect(await dumpReadModels(test.platform.redis)).toEqual(live);
  });
});

describe('a projector', () => {
  it('restores an emptied Redis without a restart', async () => {
    const { loop, stop } = runLoop(7);
    await eventually(() => loop.progress.phase === 'live');
    await flush(test.platform.redis);
    await eventually(() => models.state.isComplete());
    expect(await dumpReadModels(test.platform.redis)).toEqual(live);
    await stop();
  });

  it('does not save its progress when Redis is back with less', async () => {
    const { feed, redis } = test.platform;
    await flush(redis);
    const start = await models.state.begin();
    const half = await applyHalf();
    await models.state.save(start, half, false);
    let hasFailedOver = false;
    const projector = applying(models.projector, async (events, options) => {
      if (!hasFailedOver) {
        // The connection breaks while a batch is being applied, and the new Redis lacks the newest writes.
        hasFailedOver = true;
        const kept = new Set(ALL_PROJECTION_KEYS.filter((key) => key.endsWith(':build')));
        await redis.remove((await keysIn(redis, 'parley:rm:*')).filter((key) => !kept.has(key)));
        loop.restart();
      }
      await models.projector.applyStored(events, options);
    });
    const loop = new ProjectionLoop({ feed, state: models.state, projector, onProblem: () => undefined });
    const abort = new AbortController();
    const ended = loop.run(abort.signal);
    await eventually(async () => (await models.state.isComplete()) && loop.progress.phase === 'live');
    abort.abort();
    await ended;
    expect(hasFailedOver).toBe(true);
    expect(await dumpReadModels(redis)).toEqual(live);
  });
});

/** Applies the first half of the log, and says up to where that is. */
async function applyHalf(): Promise<GlobalPosition> {
  const abort = new AbortController();
  const log: StoredEvent[] = [];
  const { streamPrefixes } = models.projector;
  for await (const item of test.platform.feed.subscribe({ from: 'start', streamPrefixes, signal: abort.signal })) {
    if (item.kind === 'events') log.push(...item.events);
    if (item.kind === 'caught-up') break;
  }
  abort.abort();
  const half = log.slice(0, Math.floor(log.length / 2));
  await models.projector.applyStored(half);
  const position = half.at(-1)?.position;
  if (!position) throw new Error('the log is empty');
  return position;
}

describe('a rebuild while the log is unavailable', () => {
  it('leaves the read models as they are', async () => {
    const feed: LogFeed = {
      subscribe: (options) => test.platform.feed.subscribe(options),
      idAt: (position) => test.platform.feed.idAt(position),
      mayHaveRemoved: (...asked) => test.platform.feed.mayHaveRemoved(...asked),
      head: () => Promise.reject(storeUnavailable('the event store')),
    };
    const before = await dumpReadModels(test.platform.redis);
    await expect(rebuild({ feed, ...models }, { signal: AbortSignal.timeout(10_000) })).rejects.toThrow(/unavailable/);
    expect(await dumpReadModels(test.platform.redis)).toEqual(before);
    expect(await models.state.isComplete()).toBe(true);
  });
});
