import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { eventually } from '#test/support/eventually.ts';
import { startTestPlatform, type TestPlatform } from '#test/support/platform.ts';
import type { TestRedis } from '#test/support/redis.ts';
import { contextOf, live, type LiveChannel, newChannel, recordTopic } from '#test/support/realtime/channel-life.ts';

let test: TestPlatform<TestRedis>;
let features: Features;

beforeEach(async () => {
  test = await startTestPlatform({ redis: 'own' });
  features = composeFeatures(test.platform);
});
afterEach(() => test.stop());

async function framesAfter({ organizationId, channelId }: LiveChannel, after: number): Promise<string[]> {
  const frames: string[] = [];
  for await (const page of features.realtime.log.framesAfter(organizationId, channelId, after as ChannelSequence)) {
    frames.push(...page.map(({ json }) => json));
  }
  return frames;
}

function head({ organizationId, channelId }: LiveChannel): Promise<ChannelSequence | null> {
  return features.realtime.log.head(organizationId, channelId);
}

describe('the log of a channel, while a store is unavailable', () => {
  it('throws, and continues once it is available again', async () => {
    const channel = await newChannel(features);
    await live([features], channel, { seed: 8, commands: 60 });
    const frames = await framesAfter(channel, 0);
    await test.redis.kill9();
    // The events are in the log; the history is lost.
    expect(await head(channel)).toBe(frames.length);
    await expect(framesAfter(channel, 9)).rejects.toMatchObject({ code: 'store_unavailable' });
    await test.redis.restart();
    await eventually(async () => expect(await framesAfter(channel, 9)).toEqual(frames.slice(9)));
    await test.eventStore.stop();
    await expect(head(channel)).rejects.toMatchObject({ code: 'store_unavailable' });
    await expect(framesAfter(channel, 9)).rejects.toMatchObject({ code: 'store_unavailable' });
  });
});

describe('an event that could not be published', () => {
  it('is read from the log once the projector announces it', async () => {
    const channel = await newChannel(features);
    const topic = await recordTopic(test.platform.topics, channel);
    await test.redis.kill9();
    const context = contextOf(channel.organizationId, newId(), 1);
    const renamed = await features.channels.update(context, channel.channelId, { name: 'while it was away' });
    expect(renamed.ok).toBe(true);
    await test.redis.restart();
    // Repeatedly, because the subscription must be restored by then.
    await eventually(async () => {
      await test.redis.command('FLUSHALL');
      await features.projector.catchUp('channel', channel.organizationId, channel.channelId);
      return topic.heads.includes(2);
    });
    expect(topic.frames.size).toBe(0);
    expect(await framesAfter(channel, 1)).toEqual([expect.stringContaining('while it was away')]);
  });
});
