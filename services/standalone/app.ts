/** All of Parley in one process. `main.ts` runs it; integration tests start whole ones in temporary folders. */
import { openDataFolder } from '#infra/data-folder/index.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { Config } from '#libs/platform/config/index.ts';
import {
  backoffMs,
  createStopSequence,
  pause,
  selectRoles,
  StartRefusal,
  throwUncaught,
  unlessAborted,
  type Role,
  type StopSequence,
} from '#libs/platform/lifecycle/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';
import { openPlatform, type Platform } from '#libs/platform/runtime/index.ts';
import { createLogger, createMetrics } from '#libs/platform/telemetry/index.ts';
import type { Metrics } from '#libs/platform/telemetry/index.ts';
import { composeFeatures } from '#services/features.ts';
import { logCheckRole, refuseLostLog } from '#services/log-check.ts';
import type { RoleContext } from '#services/roles.ts';
import { ensureListenable, listenRefusal } from './listen-address.ts';
import { startStores, type Stores, type StoresOptions } from './stores.ts';

export interface StandaloneParts {
  /** In the order in which they start; they stop in the reverse one. */
  readonly roles: readonly Role<RoleContext, Config>[];
  /** Runs beside them where no role listens, so that every process can be asked how it is. */
  readonly withoutGateway?: Role<RoleContext, Config>;
  /** Makes the first organization and its key if they are not there; called at every start, before the roles. */
  bootstrap?(context: RoleContext, config: Config): Promise<FirstKey>;
  /** Something without which nothing works is gone for good. Default: the error is thrown, uncaught. */
  onLost?(error: unknown): void;
  readonly log?: ReturnType<typeof createLogger>;
  /** Default: with those of the process. */
  readonly metrics?: Metrics;
  readonly startEventStore?: StoresOptions['startEventStore'];
}

export interface FirstKey {
  /** To be shown once; null if there is none to show. */
  readonly apiKey: string | null;
  /** To be called when it was shown; until then every start shows it again. */
  shown(): Promise<void>;
}

export interface Standalone {
  /** `http://127.0.0.1:8080`, without a slash at the end. */
  readonly baseUrl: string;
  readonly dataDir: string;
  readonly stores: Stores;
  readonly platform: Platform;
  readonly firstKey: FirstKey;
  /** Refuses new work, drains, closes clients, ends the stores. Resolves with the parts that did not stop properly. */
  stop(): Promise<readonly string[]>;
}

/**
 * @param signal gives up the start: nothing waits for a store any longer
 * @throws StartRefusal when the operator has to do something first; the reason of the signal when that has aborted.
 *   Nothing is left running then
 */
export async function startStandalone(
  config: Config,
  parts: StandaloneParts,
  signal: AbortSignal = new AbortController().signal,
): Promise<Standalone> {
  const log = parts.log ?? createLogger({ level: config.logLevel });
  const stops = createStopSequence(log, config.stopTimeoutMs);
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
  // 1. What can be refused is refused before anything runs.
  const roles = selectRoles(parts.roles, config.roles);
  const folder = await openDataFolder(config.dataDir);
  stops.add('data folder', () => folder.release());
  await ensureListenable(config.host, config.port);

  // 2. Stores, and clients of them.
  const stores = await startStores(config, folder.path, {
    stops,
    log,
    onLost,
    signal,
    startEventStore: parts.startEventStore,
  });
  signal.throwIfAborted();
  const platform = openPlatform({
    ...stores,
    log,
    metrics: parts.metrics ?? createMetrics(),
    stopping: stops.stopping,
    tokenSecret: config.tokenSecret ?? `of ${folder.instanceId}`,
  });
  stops.add('clients of the stores', () => platform.close());
  await folder.publish(stores);
  const context = { platform, features: composeFeatures(platform) };

  // 3. The log is the one that the read models were built from, and holds a first key.
  if (!(await isReachable(platform.redis))) {
    const check = await logCheckRole.start(context, config);
    stops.add(logCheckRole.name, () => check.stop());
  }
  const firstKey = await beginOnLog(parts, context, { ...config, dataDir: folder.path });

  // 4. Roles: the last one started is the first one stopped.
  const startRole = async (role: Role<RoleContext, Config>): Promise<string | undefined> => {
    signal.throwIfAborted();
    const running = await role.start(context, config);
    stops.add(role.name, () => running.stop());
    return running.url;
  };
  let url: string | undefined;
  for (const role of roles) url = (await startRole(role)) ?? url;
  if (url === undefined && parts.withoutGateway !== undefined) url = await startRole(parts.withoutGateway);
  const baseUrl = url ?? `http://${config.host}:${config.port}`;
  await folder.publish({ ...stores, baseUrl });

  return { baseUrl, dataDir: folder.path, stores, platform, firstKey, stop: () => stops.stop(config.stopDelayMs) };
}

/** Of a Redis that is away, the log is checked as soon as it is back. */
function isReachable(redis: Platform['redis']): Promise<boolean> {
  return waitForRedis(redis, REDIS_WAIT_MS).then(
    () => true,
    () => false,
  );
}

/** An event store of somebody else may still be starting, or be away for a moment. */
const BOOTSTRAP_ATTEMPTS = 20;
const REDIS_WAIT_MS = 2_000;

async function beginOnLog(
  { bootstrap, log, signal }: AllParts,
  context: RoleContext,
  config: Config,
): Promise<FirstKey> {
  const { platform } = context;
  for (let attempt = 1; ; attempt++) {
    try {
      if (platform.redis.isReady) await unlessAborted(refuseLostLog(platform), signal);
      if (bootstrap === undefined) return { apiKey: null, shown: async () => undefined };
      return await unlessAborted(bootstrap(context, config), signal);
    } catch (error) {
      if (!(error instanceof Fault)) throw error;
      if (attempt === BOOTSTRAP_ATTEMPTS)
        throw new StartRefusal(`${error.message}: start it, or check its address and credentials`);
      log.warn({ err: error, attempt }, 'waiting for the event store');
      await pause(backoffMs(attempt, { maxMs: 3_000 }), signal);
    }
  }
}
