import { pino } from 'pino';

import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { openPlatform } from '#libs/platform/runtime/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';

import { startTestEventStore } from './event-store.ts';
import type { TestEventStore } from './event-store.ts';
import { startEmptyRedis, startTestRedis } from './redis.ts';
import type { EmptyRedis, TestRedis } from './redis.ts';

/** New stores, and the platform on them. */
export interface TestPlatform<R extends EmptyRedis = EmptyRedis> {
  readonly platform: Platform;
  readonly redis: R;
  readonly eventStore: TestEventStore;
  stop(): Promise<void>;
}

/** For tests that kill or configure Redis. */
export interface WithOwnRedis {
  readonly redis: 'own';
}

export async function startTestPlatform(options: WithOwnRedis): Promise<TestPlatform<TestRedis>>;
export async function startTestPlatform(options?: WithOwnRedis): Promise<TestPlatform>;
export async function startTestPlatform(options?: WithOwnRedis): Promise<TestPlatform> {
  const startRedis = options?.redis === 'own' ? startTestRedis : startEmptyRedis;
  const [redis, eventStore] = await Promise.all([startRedis(), startTestEventStore()]);
  const platform = openPlatform({
    eventstoreUrl: eventStore.url,
    redisUrl: redis.url,
    log: pino({ level: 'silent' }),
    metrics: createMetrics({ processMetrics: false }),
    tokenSecret: 'a secret of this test only',
  });
  await waitForRedis(platform.redis, 5_000);
  return {
    platform,
    redis,
    eventStore,
    async stop() {
      await platform.close();
      await Promise.all([redis.stop(), eventStore.stop()]);
    },
  };
}
