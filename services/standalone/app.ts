/** All of Parley in one process. `main.ts` runs it; integration tests start whole ones in temporary folders. */
import { join } from 'node:path';

import { openDataFolder } from '#infra/data-folder/index.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { type Config, VERSION } from '#libs/platform/config/index.ts';
import {
  retry,
  StartRefusal,
  throwUncaught,
  unlessAborted,
  StopSequence,
  within,
} from '#libs/platform/lifecycle/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';
import { openPlatform, type Platform } from '#libs/platform/runtime/index.ts';
import { createLogger, createMetrics, type Metrics } from '#libs/platform/telemetry/index.ts';
import { bootstrapOn, type Bootstrapped } from '#services/first-organization.ts';
import { composeFeatures } from '#services/features.ts';
import { startHealth } from '#services/health.ts';
import { ensureListenable, listenRefusal } from '#services/listen-address.ts';
import { refuseLostLog, startLogCheck } from '#services/log-check.ts';
import type { RoleContext } from '#services/role.ts';
import { ROLES } from '#services/roles.ts';
import { selectRoles, startRoles, type StartedRole } from '#services/start-roles.ts';

import { startStores, type Stores, type StoresOptions } from './stores.ts';

export interface StandaloneParts {
  /** In the order in which they start; they stop in the reverse one. Default: all. */
  readonly roles?: readonly StartedRole[];
  /** The event store could not be restarted. Default: throws the error, uncaught. */
  onLost?(error: unknown): void;
  readonly log?: ReturnType<typeof createLogger>;
  /** Default: new ones, with the metrics of the process. */
  readonly metrics?: Metrics;
  readonly startEventStore?: StoresOptions['startEventStore'];
}

export interface Standalone {
  /** `http://127.0.0.1:8080`, without a slash at the end. */
  readonly baseUrl: string;
  readonly dataDir: string;
  readonly stores: Stores;
  readonly platform: Platform;
  readonly firstKey: Bootstrapped;
  /** Refuses new work, drains, closes clients, stops the stores. Resolves with the parts that did not stop properly. */
  stop(): Promise<readonly string[]>;
}

/**
 * @param signal cancels the start, also while it waits for a store
 * @throws StartRefusal when the operator has to do something first; the reason of the signal when that has aborted.
 *   Nothing is left running then
 */
export async function startStandalone(
  config: Config,
  parts: StandaloneParts = {},
  signal: AbortSignal = new AbortController().signal,
): Promise<Standalone> {
  const log = parts.log ?? createLogger({ level: config.logLevel });
  const stops = new StopSequence(log, config.stopTimeoutMs);
  try {
    return await start(config, { onLost: throwUncaught, ...parts, log, signal }, stops);
  } catch (error) {
    const failed = await stops.stop();
    if (error === signal.reason && failed.length > 0) {
      throw new Error(`not stopped properly: ${failed.join(', ')}`, { cause: error });
    }
    throw listenRefusal(error, config.host, config.port) ?? error;
  }
}

type AllParts = StandaloneParts & Required<Pick<StandaloneParts, 'log' | 'onLost'>> & { readonly signal: AbortSignal };

async function start(config: Config, parts: AllParts, stops: StopSequence): Promise<Standalone> {
  const { log, onLost, signal } = parts;
  // 1. All checks that can refuse the start, before anything runs.
  const roles = selectRoles(parts.roles ?? ROLES, config.roles);
  const folder = await openDataFolder(config.dataDir);
  stops.add('data folder', () => folder.release());
  await ensureListenable(config.host, config.port);

  // 2. Stores and their clients.
  const { embedded, redisSocketPath, ...stores } = await startStores(config, folder.path, {
    stops,
    log,
    onLost,
    signal,
    startEventStore: parts.startEventStore,
  });
  signal.throwIfAborted();
  const platform = await openPlatform({
    ...stores,
    embedded,
    redisSocketPath,
    redisTls: config.redisTls,
    log,
    metrics: parts.metrics ?? createMetrics({ build: { version: VERSION, revision: config.revision } }),
    stopping: stops.stopping,
    tokenSecret: config.tokenSecret ?? `of ${folder.instanceId}`,
    fetch: { allowHosts: config.fetchAllowHosts },
    model: config.model,
    tracing: config.tracing,
    temporaryIn: folder.path,
    cacheDir: folder.path,
    blobsDir: join(folder.path, 'blobs'),
    blobsS3: config.mediaS3,
  });
  stops.add('clients of the stores', () => platform.close());
  await folder.publish(stores);

  // 3. Checks that the read models were built from this log, and creates the first key.
  const features = composeFeatures(platform, config);
  const begun = beginOnLog({ platform, features }, { ...config, dataDir: folder.path }, parts);
  const { firstKey, isChecked } = await servingHealth(platform, config, begun);
  const check = isChecked ? null : startLogCheck(platform);
  if (check !== null) stops.add('log check', () => check.stop());

  // 4. Roles: the last one started is the first one stopped.
  const context = { platform, features, logChecked: check?.passed ?? Promise.resolve() };
  const baseUrl = await startRoles(roles, context, { config, stops, signal });
  await folder.publish({ ...stores, baseUrl });

  return { baseUrl, dataDir: folder.path, stores, platform, firstKey, stop: () => stops.stop(config.stopDelayMs) };
}

/** A start that takes longer waits for a store. */
const HEALTH_AFTER_MS = 1_000;
const WAITS = new Error('a start waits for a store');

/** Serves health and metrics, and that the process is not ready, while `begun` waits for a store. */
async function servingHealth<T>(platform: Platform, config: Config, begun: Promise<T>): Promise<T> {
  try {
    return await within(HEALTH_AFTER_MS, begun, () => WAITS);
  } catch (error) {
    if (error !== WAITS) throw error;
  }
  const start = { name: 'start', check: async () => ({ ok: false, detail: { reason: 'waits for the event store' } }) };
  const probes = [...platform.probes, start];
  const health = await startHealth({ platform: { ...platform, probes } }, config, { isStarting: true });
  try {
    return await begun;
  } finally {
    await health.stop();
  }
}

/** A configured event store may still be starting, or be unavailable for a moment. */
const BOOTSTRAP_ATTEMPTS = 20;
const REDIS_WAIT_MS = 2_000;

/** Checks the log, if Redis can be reached, and creates the first organization and its key if they are missing. */
async function beginOnLog(
  context: Pick<RoleContext, 'platform' | 'features'>,
  config: Config,
  { log, signal }: AllParts,
): Promise<{ readonly firstKey: Bootstrapped; readonly isChecked: boolean }> {
  const { platform } = context;
  await waitForRedis(platform.redis, REDIS_WAIT_MS).catch(() => undefined);
  const begin = async () => {
    const isChecked = platform.redis.isReady;
    // Both name the reason if TLS with the event store fails.
    await unlessAborted(isChecked ? refuseLostLog(platform) : platform.store.ping(), signal);
    return { firstKey: await unlessAborted(bootstrapOn(context, config), signal), isChecked };
  };
  return retry(begin, {
    maxMs: 3_000,
    signal,
    onFailure(error, failures) {
      if (!(error instanceof Fault)) throw error;
      if (failures === BOOTSTRAP_ATTEMPTS)
        throw new StartRefusal(`${error.message}${causeOf(error)}: start it, or check its address and credentials`);
      log.warn({ err: error, attempt: failures }, 'waiting for the event store');
    },
  }).catch((error: unknown) => {
    // A stop during a pause is a clean stop, whatever the last attempt failed with.
    signal.throwIfAborted();
    throw error;
  });
}

function causeOf({ cause }: Fault): string {
  return cause instanceof Error ? ` (${cause.message})` : '';
}
