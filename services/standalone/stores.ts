import { join } from 'node:path';
import { startPrivateRedis } from '#infra/private-redis/index.ts';
import type { Config } from '#libs/platform/config/index.ts';
import type { LifecycleLog, StopSequence } from '#libs/platform/lifecycle/index.ts';
import { startEmbeddedEventStore } from './embedded-event-store.ts';

export interface Stores {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
}

/** Starts what the configuration does not name an address for; `stops` ends it again. */
export async function startStores(
  config: Config,
  dataDir: string,
  { stops, log, onLost }: { stops: StopSequence; log: LifecycleLog; onLost(error: unknown): void },
): Promise<Stores> {
  let { eventstoreUrl, redisUrl } = config;
  if (eventstoreUrl === undefined) {
    const eventStore = await startEmbeddedEventStore({ dataDir: join(dataDir, 'eventstore'), log, onLost });
    stops.add('embedded event store', () => eventStore.stop());
    eventstoreUrl = eventStore.url;
  }
  if (redisUrl === undefined) {
    const redis = await startPrivateRedis({ dataDir: join(dataDir, 'redis'), log });
    stops.add('private redis', () => redis.stop());
    redisUrl = redis.url;
  }
  return { eventstoreUrl, redisUrl };
}
