import { pino } from 'pino';

import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { openPlatform } from '#libs/platform/runtime/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';

import { startTestEventStore } from './event-store.ts';
import type { TestEventStore } from './event-store.ts';
import { startTestRedis } from './redis.ts';

/** Real stores of its own, and the platform on them. */
export interface TestPlatform {
  readonly platform: Platform;
  readonly redis: Awaited<ReturnType<typeof startTestRedis>>;
  readonly eventStore: TestEventStore;
  stop(): Promise<void>;
}

export async function startTestPlatform(): Promise<TestPlatform> {
  const [redis, eventStore] = await Promise.all([startTestRedis(), startTestEventStore()]);
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
