import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { PROJECTION_KEYS } from '#libs/platform/readmodel/index.ts';
import { composeFeatures, composeReadModels } from '#services/features.ts';
import type { ReadModels } from '#services/features.ts';
import { ProjectionLoop } from '#services/projector/projection-loop.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { eventually } from '#test/support/eventually.ts';
import { playChannels } from '#test/support/channel-history.ts';
import { startTestPlatform } from '#test/support/platform.ts';
import type { TestPlatform } from '#test/support/platform.ts';
import { digestOfDump, dumpReadModels } from '#test/support/read-model-dump.ts';

let test: TestPlatform;
let models: ReadModels;
let live: Record<string, unknown>;

beforeAll(async () => {
  test = await startTestPlatform();
  models = composeReadModels(test.platform);
  await playChannels(composeFeatures(test.platform).channels.commands, {
    seed: 7,
    commands: 400,
  });
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

  it('that was cut short is finished by the next projector', async () => {
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
    const lists = Object.keys(live).filter((key) => key.includes('-list:'));
    expect(lists.length).toBeGreaterThan(2);
    await test.platform.redis.del(...lists, ...Object.values(PROJECTION_KEYS));
    const { loop, stop } = runLoop();
    await eventually(() => loop.progress.phase === 'live');
    await stop();
    expect(await dumpReadModels(test.platform.redis)).toEqual(live);
  });
});

describe('a projector', () => {
  it('brings a Redis that was emptied back without a restart', async () => {
    const { loop, stop } = runLoop(7);
    await eventually(() => loop.progress.phase === 'live');
    await test.platform.redis.flushall();
    await eventually(() => models.state.isComplete());
    expect(await dumpReadModels(test.platform.redis)).toEqual(live);
    await stop();
  });
});
