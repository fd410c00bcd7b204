/** One role in a process of its own, on stores that others share. It keeps nothing on the disk of its machine. */
import { refuseUnusableKey } from '#libs/features/keys/index.ts';
import { parseConfig, type Config, type VariableName, type Variables } from '#libs/platform/config/index.ts';
import { createStopSequence, type LifecycleLog, type Role, type StopSequence } from '#libs/platform/lifecycle/index.ts';
import { openPlatform } from '#libs/platform/runtime/index.ts';
import { createMetrics, type createLogger } from '#libs/platform/telemetry/index.ts';
import { composeFeatures } from '#services/features.ts';
import { gatewayRole } from '#services/gateway/role.ts';
import { healthRole } from '#services/health/role.ts';
import { logCheckRole } from '#services/log-check.ts';
import { projectorRole } from '#services/projector/role.ts';
import { realtimeRole } from '#services/realtime/role.ts';
import { relayRole } from '#services/relay/role.ts';
import type { RoleContext } from '#services/roles.ts';
import { ensureListenable, listenRefusal } from '#services/standalone/listen-address.ts';

import { bootstrapJob } from './bootstrap-job.ts';
import type { RoleName } from '#libs/platform/config/role-names.ts';

interface ProcessOfARole {
  /** The last one started is the first one stopped. */
  readonly roles: readonly Role<RoleContext, Config>[];
  readonly needs: readonly VariableName[];
}

const STORES = ['PARLEY_TOKEN_SECRET', 'EVENTSTORE_URL', 'REDIS_URL'] as const;

/** Whoever does not listen has its health served beside it, from before its start until after its stop. */
const PROCESSES: Readonly<Record<RoleName, ProcessOfARole>> = {
  // Who calls the API needs a first organization; the other roles have no use for it.
  gateway: { roles: [bootstrapJob, gatewayRole], needs: STORES },
  realtime: { roles: [logCheckRole, realtimeRole], needs: STORES },
  // The projector checks the log itself, before it follows it.
  projector: { roles: [healthRole, projectorRole], needs: STORES },
  relay: { roles: [logCheckRole, healthRole, relayRole], needs: [...STORES, 'KAFKA_BROKERS'] },
};

/** @throws ConfigError with everything that is wrong or missing; StartRefusal */
export function configOfRole(name: RoleName, variables: Variables): Config {
  const config = parseConfig(variables, { by: `the role ${name}`, variables: PROCESSES[name].needs });
  refuseUnusableKey(config.bootstrapKey);
  return { ...config, roles: [name] };
}

export interface RoleProcess {
  /** `http://127.0.0.1:8080`, without a slash at the end. */
  readonly baseUrl: string;
  /** Says that it is not ready, waits for the delay, drains, closes. Resolves with the parts that did not stop properly. */
  stop(): Promise<readonly string[]>;
}

/**
 * Resolves when it listens: stores may be away as long as they like, `/health/ready` names them until they are there.
 *
 * @throws StartRefusal when the operator has to do something first; nothing is left running then
 */
export async function startRoleProcess(
  name: RoleName,
  config: Config,
  log: ReturnType<typeof createLogger> & LifecycleLog,
): Promise<RoleProcess> {
  const stops = createStopSequence(log, config.stopTimeoutMs);
  const command = `npx parley ${name}`;
  try {
    await ensureListenable(config.host, config.port, command);
    const baseUrl = await start(PROCESSES[name].roles, config, { log, stops });
    log.info({ role: name, url: baseUrl }, 'listening');
    return { baseUrl, stop: () => stops.stop(config.stopDelayMs) };
  } catch (error) {
    await stops.stop();
    throw listenRefusal(error, config.host, config.port, command) ?? error;
  }
}

async function start(
  roles: readonly Role<RoleContext, Config>[],
  config: Config,
  { log, stops }: { readonly log: Parameters<typeof openPlatform>[0]['log']; readonly stops: StopSequence },
): Promise<string> {
  const { eventstoreUrl, redisUrl, tokenSecret } = config;
  if (eventstoreUrl === undefined || redisUrl === undefined || tokenSecret === undefined) {
    throw new TypeError('the configuration is not one of configOfRole');
  }
  const metrics = createMetrics();
  const platform = openPlatform({ eventstoreUrl, redisUrl, tokenSecret, log, metrics, stopping: stops.stopping });
  stops.add('clients of the stores', () => platform.close());
  const context = { platform, features: composeFeatures(platform) };
  let url = '';
  for (const role of roles) {
    const running = await role.start(context, config);
    stops.add(role.name, () => running.stop());
    url = running.url ?? url;
  }
  return url;
}
