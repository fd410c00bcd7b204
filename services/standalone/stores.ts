import { join } from 'node:path';
import { startPrivateRedis } from '#infra/private-redis/index.ts';
import { conceal } from '#libs/kernel/secrets.ts';
import { passwordsIn, type Config } from '#libs/platform/config/index.ts';
import type { LifecycleLog, StopSequence } from '#libs/platform/lifecycle/index.ts';
import {
  startEmbeddedEventStore,
  type EmbeddedEventStore,
  type EmbeddedEventStoreOptions,
} from './embedded-event-store.ts';

export interface Stores {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
}

export interface StartedStores extends Stores {
  /** Of the embedded event store. */
  readonly embedded: EmbeddedEventStore['local'] | undefined;
  /** Of the private Redis. */
  readonly redisSocketPath: string | undefined;
}

export interface StoresOptions {
  readonly stops: StopSequence;
  readonly log: LifecycleLog;
  onLost(error: unknown): void;
  /** Cancels the start. */
  readonly signal?: AbortSignal;
  /** Default: in its own thread. */
  readonly startEventStore?: ((options: EmbeddedEventStoreOptions) => Promise<EmbeddedEventStore>) | undefined;
}

/** Starts the stores without a configured address, concurrently. */
export async function startStores(config: Config, dataDir: string, options: StoresOptions): Promise<StartedStores> {
  const { stops, log, onLost, signal, startEventStore = startEmbeddedEventStore } = options;
  let embedded: EmbeddedEventStore['local'] | undefined;
  let redisSocketPath: string | undefined;
  async function eventStore(): Promise<string> {
    const store = await startEventStore({ dataDir: join(dataDir, 'eventstore'), log, onLost });
    embedded = store.local;
    stops.add('embedded event store', () => store.stop());
    return store.url;
  }
  async function redis(): Promise<string> {
    const store = await startPrivateRedis({ dataDir: join(dataDir, 'redis'), log, ...(signal && { signal }) });
    redisSocketPath = store.socketPath;
    stops.add('private redis', () => store.stop());
    return store.url;
  }
  // Waits for both: a store that has started when the other one fails must be known to `stops`.
  const [eventstoreUrl, redisUrl] = await Promise.allSettled([
    config.eventstoreUrl ?? eventStore(),
    config.redisUrl ?? redis(),
  ]);
  const urls = { eventstoreUrl: valueOf(eventstoreUrl), redisUrl: valueOf(redisUrl) };
  conceal(Object.values(urls).flatMap(passwordsIn));
  return { ...urls, redisSocketPath, embedded };
}

function valueOf(result: PromiseSettledResult<string>): string {
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}
