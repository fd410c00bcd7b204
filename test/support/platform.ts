import { pino } from 'pino';

import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { openPlatform, type Platform, type PlatformOptions } from '#libs/platform/runtime/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';
import type { FeatureConfig } from '#services/features.ts';

import { startTestEventStore, type TestEventStore } from './event-store.ts';
import { type EmptyRedis, startEmptyRedis, startTestRedis, type TestRedis } from './redis.ts';

export const TOKEN_SECRET = 'a secret of this test only';

/** New stores, and the platform on them. */
export interface TestPlatform<R extends EmptyRedis = EmptyRedis> {
  readonly platform: Platform;
  readonly config: Partial<FeatureConfig>;
  readonly redis: R;
  readonly eventStore: TestEventStore;
  stop(): Promise<void>;
}

export interface TestPlatformOptions extends Partial<FeatureConfig> {
  /** For tests that kill or configure Redis. */
  readonly redis?: 'own';
  /** In a process of its own, which disconnects a silent client after twice this time. Default: in a thread. */
  readonly keepAliveMs?: number;
  readonly fetch?: PlatformOptions['fetch'];
  readonly blobsDir?: string;
  readonly blobsS3?: PlatformOptions['blobsS3'];
  readonly model?: PlatformOptions['model'];
  readonly tracing?: PlatformOptions['tracing'];
}
export type WithOwnRedis = TestPlatformOptions & { readonly redis: 'own' };

export async function startTestPlatform(options: WithOwnRedis): Promise<TestPlatform<TestRedis>>;
export async function startTestPlatform(options?: TestPlatformOptions): Promise<TestPlatform>;
export async function startTestPlatform(options?: TestPlatformOptions): Promise<TestPlatform> {
  const startRedis = options?.redis === 'own' ? startTestRedis : startEmptyRedis;
  const { keepAliveMs } = options ?? {};
  const startEventStore = () =>
    keepAliveMs === undefined ? startTestEventStore() : startTestEventStore({ mode: 'process', keepAliveMs });
  const [redis, eventStore] = await Promise.all([startRedis(), startEventStore()]);
  const platform = await openPlatform({
    eventstoreUrl: eventStore.url,
    embedded: eventStore.local,
    redisUrl: redis.url,
    log: pino({ level: 'silent' }),
    metrics: createMetrics({ processMetrics: false }),
    tokenSecret: TOKEN_SECRET,
    ...(options?.fetch && { fetch: options.fetch }),
    ...(options?.blobsDir !== undefined && { blobsDir: options.blobsDir }),
    ...(options?.blobsS3 && { blobsS3: options.blobsS3 }),
    ...(options?.model && { model: options.model }),
    ...(options?.tracing && { tracing: options.tracing }),
  });
  await waitForRedis(platform.redis, 60_000);
  return {
    platform,
    config: options ?? {},
    redis,
    eventStore,
    async stop() {
      await platform.close();
      await Promise.all([redis.stop(), eventStore.stop()]);
    },
  };
}
