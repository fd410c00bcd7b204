import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

import { connectEventStore } from '#libs/platform/eventstore/index.ts';
import type { EventFeed, EventStore } from '#libs/platform/eventstore/index.ts';
import { ReadModel } from '#libs/platform/readmodel/index.ts';
import { connectRedis } from '#libs/platform/redis/index.ts';
import type { Metrics } from '#libs/platform/telemetry/index.ts';

/** What every role works with. Opened once per process, closed by whoever opened it. */
export interface Platform {
  readonly store: EventStore;
  readonly feed: EventFeed;
  readonly redis: Redis;
  readonly readModel: ReadModel;
  readonly log: Logger;
  readonly metrics: Metrics;
  close(): Promise<void>;
}

export interface PlatformOptions {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/**
 * Opens the clients of the stores. Neither needs to be up: what needs one that is away fails with a
 * `store_unavailable` fault until it is back.
 */
export function openPlatform({ eventstoreUrl, redisUrl, log, metrics }: PlatformOptions): Platform {
  const { store, feed, close } = connectEventStore({ url: eventstoreUrl });
  const redis = connectRedis(redisUrl, {
    onError: (error) => log.warn({ err: error }, 'redis: connection lost'),
  });
  return {
    store,
    feed,
    redis,
    readModel: new ReadModel(redis),
    log,
    metrics,
    async close() {
      redis.disconnect();
      await close();
    },
  };
}
