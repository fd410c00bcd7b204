/** The stores of an installation: named by the environment, running, or started for this command. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import type { EntityId } from '#libs/kernel/ids.ts';
import { findRunning, openDataFolder } from '#infra/data-folder/index.ts';
import { backoffMs, StopSequence, pause, silentLog } from '#libs/platform/lifecycle/index.ts';
import type { Config } from '#libs/platform/config/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';
import { openPlatform, type Platform } from '#libs/platform/runtime/index.ts';
import { createLogger, createMetrics } from '#libs/platform/telemetry/index.ts';
import { composeFeatures, type Features } from '#services/features.ts';
import { refuseLostLog } from '#services/log-check.ts';
import { startStores, type Stores } from '#services/standalone/stores.ts';
import { FIRST_ORGANIZATION } from '#services/first-organization.ts';
import { CliError, noOrganization } from './errors.ts';

/** Clients of the stores, for one command. */
export interface Session {
  readonly platform: Platform;
  readonly features: Features;
  /** Whether this process has started the stores: no other process of Parley runs on them. */
  readonly isAlone: boolean;
  close(): Promise<void>;
}

export interface SessionOptions {
  /** Accepts a log that lacks events which the read models hold. Default: refuses it. */
  readonly acceptLostEvents?: boolean;
  /** Runs a projector until the read models are complete, if this session starts the stores. Default: true. */
  readonly catchUp?: boolean;
}

const REDIS_WAIT_MS = 5_000;
const PROJECTION_WAIT_MS = 60_000;

/**
 * Connects to the stores that the environment names, else to those of the Parley that runs on the data folder, else
 * starts the embedded ones; in the last case this process locks the folder until the session is closed.
 *
 * @throws StartRefusal or CliError with a remedy; `Fault` if a store does not answer
 */
export async function openSession(config: Config, options: SessionOptions = {}): Promise<Session> {
  const { acceptLostEvents = false, catchUp = true } = options;
  const stops = new StopSequence(silentLog, config.stopTimeoutMs);
  try {
    const { stores, folder, ours } = await findStores(config, stops);
    const platform = await openPlatform({
      ...stores,
      redisTls: config.redisTls,
      log: createLogger({ level: 'silent' }),
      metrics: createMetrics(),
      tokenSecret: 'no tokens are made here',
      fetch: { allowHosts: config.fetchAllowHosts },
      blobsDir: join(config.dataDir, 'blobs'),
      blobsS3: config.mediaS3,
      model: config.model,
      // With the search indexes and vectors of the Parley of this folder.
      cacheDir: folder,
    });
    stops.add('clients of the stores', () => platform.close());
    await waitForRedis(platform.redis, REDIS_WAIT_MS);
    if (!acceptLostEvents) await refuseLostLog(platform);
    const features = composeFeatures(platform, config);
    // A projector would refuse a log that lacks events; the rebuild that accepts it reads the log itself.
    if (ours && catchUp && !acceptLostEvents) await project(platform, features, config, stops);
    return { platform, features, isAlone: ours, close: async () => void (await stops.stop()) };
  } catch (error) {
    await stops.stop();
    throw error;
  }
}

interface FoundStores {
  readonly stores: Stores;
  /** The data folder that they belong to; undefined for stores that the environment names. */
  readonly folder: string | undefined;
  readonly ours: boolean;
}

async function findStores(config: Config, stops: StopSequence): Promise<FoundStores> {
  const { eventstoreUrl, redisUrl } = config;
  if (eventstoreUrl !== undefined && redisUrl !== undefined)
    return { stores: { eventstoreUrl, redisUrl }, folder: undefined, ours: false };
  const running = await findRunning(config.dataDir);
  if (running !== undefined) {
    const found = { eventstoreUrl: eventstoreUrl ?? running.eventstoreUrl, redisUrl: redisUrl ?? running.redisUrl };
    if (found.eventstoreUrl === undefined || found.redisUrl === undefined) {
      throw new CliError('Parley is starting, or another command uses the data folder; try again in a moment');
    }
    const stores = { eventstoreUrl: found.eventstoreUrl, redisUrl: found.redisUrl };
    return { stores, folder: config.dataDir, ours: false };
  }
  await access(config.dataDir).catch(() => {
    throw new CliError(
      `there is no data folder ${config.dataDir}; run npm start first, or name another folder with DATA_DIR=…`,
    );
  });
  const folder = await openDataFolder(config.dataDir);
  stops.add('data folder', () => folder.release());
  const onLost = (error: unknown): never => {
    throw error;
  };
  const stores = await startStores(config, folder.path, { stops, log: silentLog, onLost });
  return { stores, folder: folder.path, ours: true };
}

/**
 * Completes the read models, because no other process projects into stores that this session has started. Follows the
 * log, never Kafka: as a member of the group it would hold partitions of other processes, and without their secret it
 * could not verify messages.
 */
async function project(platform: Platform, features: Features, config: Config, stops: StopSequence): Promise<void> {
  const { start: startProjector } = await import('#services/projector/role.ts');
  const projector = await startProjector(
    { platform, features, logChecked: Promise.resolve() },
    { ...config, projectorFeed: 'log' },
  );
  stops.add('projector', () => projector.stop());
  const deadline = Date.now() + PROJECTION_WAIT_MS;
  const never = new AbortController().signal;
  for (let attempt = 1; !(await features.state.isComplete()) && Date.now() < deadline; attempt++) {
    await pause(backoffMs(attempt, { firstMs: 10, maxMs: 250 }), never);
  }
}

/** @throws CliError if there is no such organization */
export async function organizationOf(
  { features }: Session,
  options: { readonly organization?: string },
): Promise<EntityId> {
  const id = options.organization ?? FIRST_ORGANIZATION;
  if ((await features.organizations.find(id, id)) !== null) return id;
  throw new CliError(noOrganization(options));
}
