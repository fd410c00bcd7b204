/** The platform of a process of ours that works without HTTP. */
import { pino } from 'pino';

import { openPlatform, type Platform } from '#libs/platform/runtime/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';

export interface BenchPlatform {
  readonly platform: Platform;
  /**
   * @throws on any warning of the platform's log: a read model that could not be written would make figures worthless
   */
  check(): void;
}

export async function openBenchPlatform(urls: {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
}): Promise<BenchPlatform> {
  const failures: string[] = [];
  const platform = await openPlatform({
    eventstoreUrl: urls.eventstoreUrl,
    redisUrl: urls.redisUrl,
    log: pino({ level: 'warn' }, { write: (line) => void failures.push(line) }),
    metrics: createMetrics({ processMetrics: false }),
    tokenSecret: 'a secret of this run',
  });
  await waitForRedis(platform.redis, 60_000);
  return {
    platform,
    check() {
      if (failures.length > 0) throw new Error(failures[0]);
    },
  };
}
