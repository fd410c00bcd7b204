import { parseConfig, type Config, type Variables } from '#libs/platform/config/index.ts';
import { runProcess } from '#libs/platform/lifecycle/index.ts';
import { createLogger } from '#libs/platform/telemetry/index.ts';
import type { Role } from '#services/role.ts';

/**
 * Runs a role until this process receives a signal to stop: see `runProcess`.
 *
 * @throws ConfigError: nothing has been started then
 */
export function runRole(role: Role, variables: Variables): void {
  const config = configOfRole(role, variables);
  const log = createLogger({ level: config.logLevel });
  runProcess({
    log,
    stopDelayMs: () => config.stopDelayMs,
    async start(signal) {
      // Only now: to load the application takes longer than to refuse a variable.
      const { startRoleProcess } = await import('./app.ts');
      signal.throwIfAborted();
      return startRoleProcess(role, config, log);
    },
  });
}

/** @throws ConfigError with everything that is wrong or missing */
export function configOfRole({ name, needs }: Role, variables: Variables): Config {
  return { ...parseConfig(variables, { by: `the role ${name}`, variables: needs }), roles: [name] };
}
