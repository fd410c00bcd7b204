/** Parts of both `standalone` and the process of one role. */
import { ConfigError, type Config } from '#libs/platform/config/index.ts';
import type { StopSequence } from '#libs/platform/lifecycle/index.ts';

import { startHealth } from './health.ts';
import type { Role, RoleContext } from './role.ts';

export type StartedRole = Pick<Role, 'name' | 'listens' | 'start'>;

/**
 * The roles in `names`, in the order of `roles`; all roles if `names` is empty.
 *
 * @throws ConfigError for a name that no role has
 */
export function selectRoles<R extends StartedRole>(roles: readonly R[], names: readonly string[]): readonly R[] {
  const known = roles.map(({ name }) => name);
  const problems = names
    .filter((name) => !known.includes(name))
    .map((name) => `ROLES must hold names of roles (${known.join(', ')}); ${JSON.stringify(name)} is none`);
  if (problems.length > 0) throw new ConfigError(problems);
  return roles.filter(({ name }) => names.length === 0 || names.includes(name));
}

/**
 * Starts roles one after another; `stops` stops them in reverse order. Where none of them listens, health and metrics
 * are served from before their start until after their stop.
 *
 * @returns where the process listens
 */
export async function startRoles(
  roles: readonly StartedRole[],
  context: RoleContext,
  { config, stops, signal }: { readonly config: Config; readonly stops: StopSequence; readonly signal?: AbortSignal },
): Promise<string> {
  let url = `http://${config.host}:${config.port}`;
  const health = { name: 'health', start: startHealth };
  for (const role of roles.some(({ listens }) => listens) ? roles : [health, ...roles]) {
    signal?.throwIfAborted();
    const running = await role.start(context, config);
    stops.add(role.name, () => running.stop());
    url = running.url ?? url;
  }
  return url;
}
