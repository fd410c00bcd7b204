/** A role in its own process, on stores that it shares with other processes. Its local disk holds blobs only. */
import { join } from 'node:path';

import { type Config, VERSION } from '#libs/platform/config/index.ts';
import { type LifecycleLog, StopSequence } from '#libs/platform/lifecycle/index.ts';
import { openPlatform } from '#libs/platform/runtime/index.ts';
import { type createLogger, createMetrics } from '#libs/platform/telemetry/index.ts';
import { refuseUnusableKey, startBootstrap } from '#services/first-organization.ts';
import { composeFeatures } from '#services/features.ts';
import { ensureListenable, listenRefusal } from '#services/listen-address.ts';
import { startLogCheck } from '#services/log-check.ts';
import type { Role } from '#services/role.ts';
import { startRoles } from '#services/start-roles.ts';

interface RoleProcess {
  /** `http://127.0.0.1:8080`, without a slash at the end. */
  readonly baseUrl: string;
  /** Reports that it is not ready, waits for the delay, drains, closes. Resolves with the parts that did not stop properly. */
  stop(): Promise<readonly string[]>;
}

/**
 * Resolves when the process listens. Stores may be unavailable for any time; `/health/ready` names them until they answer.
 *
 * @throws StartRefusal when the operator has to do something first; nothing is left running then
 */
export async function startRoleProcess(
  role: Role,
  config: Config,
  log: ReturnType<typeof createLogger> & LifecycleLog,
): Promise<RoleProcess> {
  refuseUnusableKey(config.bootstrapKey);
  const stops = new StopSequence(log, config.stopTimeoutMs);
  const command = `npx parley ${role.name}`;
  try {
    await ensureListenable(config.host, config.port, command);
    const baseUrl = await start(role, config, { log, stops });
    log.info({ role: role.name, url: baseUrl }, 'listening');
    return { baseUrl, stop: () => stops.stop(config.stopDelayMs) };
  } catch (error) {
    await stops.stop();
    throw listenRefusal(error, config.host, config.port, command) ?? error;
  }
}

async function start(
  role: Role,
  config: Config,
  { log, stops }: { readonly log: Parameters<typeof openPlatform>[0]['log']; readonly stops: StopSequence },
): Promise<string> {
  const { eventstoreUrl, redisUrl, tokenSecret } = config;
  if (eventstoreUrl === undefined || redisUrl === undefined || tokenSecret === undefined) {
    throw new TypeError('the configuration is not one of configOfRole');
  }
  const metrics = createMetrics({ build: { version: VERSION, revision: config.revision } });
  const platform = await openPlatform({
    eventstoreUrl,
    redisUrl,
    redisTls: config.redisTls,
    tokenSecret,
    log,
    metrics,
    fetch: { allowHosts: config.fetchAllowHosts },
    model: config.model,
    tracing: config.tracing,
    blobsDir: join(config.dataDir, 'blobs'),
    blobsS3: config.mediaS3,
    stopping: stops.stopping,
  });
  stops.add('clients of the stores', () => platform.close());
  const check = startLogCheck(platform);
  stops.add('log check', () => check.stop());
  const context = { platform, features: composeFeatures(platform, config), logChecked: check.passed };
  if (role.bootstraps) {
    const job = await startBootstrap(context, config.bootstrapKey);
    stops.add('bootstrap', () => job.stop());
  }
  return startRoles([role], context, { config, stops });
}
