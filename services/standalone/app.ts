/** All of Parley in one process. `main.ts` runs it; integration tests start whole ones in temporary folders. */
import { openDataFolder, type DataFolder } from '#infra/data-folder/index.ts';
import type { Config } from '#libs/platform/config/index.ts';
import { createStopSequence, selectRoles, type Role, type StopSequence } from '#libs/platform/lifecycle/index.ts';
import { openPlatform, type Platform } from '#libs/platform/runtime/platform.ts';
import { createLogger, createMetrics } from '#libs/platform/telemetry/index.ts';
import { ensureListenable, listenRefusal } from './listen-address.ts';
import { startStores, type Stores } from './stores.ts';

export interface StandaloneParts {
  /** In the order in which they start; they stop in the reverse one. */
  readonly roles: readonly Role<Platform, Config>[];
  /**
   * Makes the first organization and its key. Called at every start until it has succeeded once on this
   * data folder, before the roles start, so it must be safe to repeat (`EVENTSTORE_URL` may name a log
   * that has organizations already).
   */
  onFirstStart?(platform: Platform, config: Config): Promise<FirstStart>;
  /** Something without which nothing works is gone for good. Default: the error is thrown, uncaught. */
  onLost?(error: unknown): void;
  readonly log?: ReturnType<typeof createLogger>;
}

export interface FirstStart {
  /** To be shown once; absent when there was nothing to make. */
  readonly apiKey?: string | undefined;
}

export interface Standalone {
  /** `http://127.0.0.1:8080`, without a slash at the end. */
  readonly baseUrl: string;
  readonly dataDir: string;
  readonly stores: Stores;
  readonly platform: Platform;
  /** Only after a first start. */
  readonly apiKey: string | undefined;
  /** Refuses new work, drains, closes clients, ends the stores. Resolves with the parts that did not stop properly. */
  stop(): Promise<readonly string[]>;
}

/** @throws StartRefusal when the operator has to do something first; nothing is left running then */
export async function startStandalone(config: Config, parts: StandaloneParts): Promise<Standalone> {
  const log = parts.log ?? createLogger({ level: config.logLevel });
  const stops = createStopSequence(log, config.stopTimeoutMs);
  try {
    return await start(config, { onLost: throwUncaught, ...parts, log }, stops);
  } catch (error) {
    await stops.stop();
    throw listenRefusal(error, config.host, config.port) ?? error;
  }
}

type AllParts = StandaloneParts & Required<Pick<StandaloneParts, 'log' | 'onLost'>>;

async function start(config: Config, parts: AllParts, stops: StopSequence): Promise<Standalone> {
  const { log, onLost } = parts;
  // 1. What can be refused is refused before anything runs.
  const roles = selectRoles(parts.roles, config.roles);
  const folder = await openDataFolder(config.dataDir);
  stops.add('data folder', () => folder.release());
  await ensureListenable(config.host, config.port);

  // 2. Stores, and clients of them.
  const stores = await startStores(config, folder.path, { stops, log, onLost });
  const platform = openPlatform({
    ...stores,
    log,
    metrics: createMetrics(),
    tokenSecret: config.tokenSecret ?? `of ${folder.instanceId}`,
  });
  stops.add('clients of the stores', () => platform.close());
  await folder.publish(stores);

  // 3. What only the first start does.
  const first = await firstStart(folder, parts, platform, config);

  // 4. Roles: the last one started is the first one stopped.
  let baseUrl = `http://${config.host}:${config.port}`;
  for (const role of roles) {
    const running = await role.start(platform, config);
    stops.add(role.name, () => running.stop());
    baseUrl = running.url ?? baseUrl;
  }
  await folder.publish({ ...stores, baseUrl });

  return { baseUrl, dataDir: folder.path, stores, platform, apiKey: first.apiKey, stop: () => stops.stop() };
}

async function firstStart(
  folder: DataFolder,
  { onFirstStart }: StandaloneParts,
  platform: Platform,
  config: Config,
): Promise<FirstStart> {
  if (folder.initialized || onFirstStart === undefined) return {};
  const result = await onFirstStart(platform, config);
  await folder.markInitialized();
  return result;
}

function throwUncaught(error: unknown): void {
  setImmediate(() => {
    throw error;
  });
}
