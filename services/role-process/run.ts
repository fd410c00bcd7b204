import { runProcess } from '#libs/platform/lifecycle/index.ts';
import type { Variables } from '#libs/platform/config/index.ts';
import { createLogger } from '#libs/platform/telemetry/index.ts';

import { configOfRole, startRoleProcess } from './app.ts';
import type { RoleName } from '#libs/platform/config/role-names.ts';

/**
 * Runs a role until this process is told to stop: see `runProcess`.
 *
 * @throws ConfigError, StartRefusal: nothing has been started then
 */
export function runRole(name: RoleName, variables: Variables): void {
  const config = configOfRole(name, variables);
  const log = createLogger({ level: config.logLevel });
  runProcess({ log, stopDelayMs: () => config.stopDelayMs, start: () => startRoleProcess(name, config, log) });
}
