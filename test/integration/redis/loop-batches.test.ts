import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { atEndOfIteration, LoopBatches } from '#libs/platform/redis/loop-batches.ts';
import type { RedisClient } from '#libs/platform/redis/redis-client.ts';
import { connectRedis, waitForRedis } from '#libs/platform/redis/redis.ts';
import { nodeWith } from '#test/support/redis-commands.ts';
import { type EmptyRedis, startEmptyRedis } from '#test/support/redis.ts';

describe('calls that are sent at the end of an iteration of the event loop', () => {
  let server: EmptyRedis;
  let redis: RedisClient;
  let node: Redis;

  beforeAll(async () => {
    server = await startEmptyRedis();
    redis = connectRedis(server.url);
    await waitForRedis(redis, 60_000);
    node = nodeWith(redis, 'turns');
  });

  afterAll(async () => {
    redis.close();
    await server.stop();
  });

  it('keep their order, except that some come first or last', async () => {
    const replies: Promise<string | number | null>[] = [];
    await new Promise<void>((resolve) => {
      const last = () => {
        replies.push(node.get('turns'));
        resolve();
      };
      atEndOfIteration(redis, last, { place: 'last' });
      atEndOfIteration(redis, () => void replies.push(node.incr('turns')));
      atEndOfIteration(redis, () => void replies.push(node.incrby('turns', 10)));
      atEndOfIteration(redis, () => void replies.push(node.get('turns')), { place: 'first' });
    });
    expect(await Promise.all(replies)).toEqual([null, 1, 11, '11']);
  });

  it('of full batches keep their place', async () => {
    const sent: string[] = [];
    const options = { create: () => [] as string[], isFull: (batch: string[]) => batch.length === 2 };
    await new Promise<void>((resolve) => {
      const last = new LoopBatches(redis, { ...options, place: 'last', send: (batch) => sent.push(...batch) });
      for (const name of ['d', 'e', 'f', 'g', 'h']) last.of('key').push(name);
      const middle = new LoopBatches(redis, { ...options, send: (batch) => sent.push(...batch) });
      for (const name of ['a', 'b', 'c']) middle.of('key').push(name);
      middle.flush('key');
      expect(sent).toEqual(['c']);
      atEndOfIteration(redis, resolve, { place: 'last' });
    });
    expect(sent).toEqual(['c', 'a', 'b', 'd', 'e', 'f', 'g', 'h']);
  });

  it('are sent together, and not before', async () => {
    const written: { during: number; corked: number }[] = [];
    const note = () => written.push({ during: node.stream.bytesWritten, corked: node.stream.writableCorked });
    const before = node.stream.bytesWritten;
    await new Promise<void>((resolve) => {
      const ping = () => void node.ping().then(() => resolve(), resolve);
      atEndOfIteration(redis, ping);
      atEndOfIteration(redis, ping);
      atEndOfIteration(redis, note);
      note();
    });
    expect(written.map(({ corked }) => corked)).toEqual([0, 1]);
    expect(written[0]?.during).toBe(before);
    expect(node.stream.writableCorked).toBe(0);
  });

  it('go to the next turn when they are made during the send', async () => {
    const order: string[] = [];
    await new Promise<void>((resolve) => {
      atEndOfIteration(redis, () => {
        order.push('first');
        atEndOfIteration(redis, () => {
          order.push('second');
          resolve();
        });
      });
      setImmediate(() => order.push('between'));
    });
    expect(order).toEqual(['first', 'between', 'second']);
  });
});
