import { Command } from 'commander';

import { ROLE_NAMES } from '#libs/platform/config/role-names.ts';
import type { RoleName } from '#libs/platform/config/role-names.ts';

import type { CliParts } from './command-context.ts';

const DOES: Readonly<Record<RoleName, string>> = {
  gateway: 'Serve the HTTP API',
  realtime: 'Serve websockets and event streams',
  projector: 'Bring the log into the read models',
  relay: 'Carry the log to Kafka, or stand by for it',
};

/**
 * Each runs until it is told to stop. What they do is loaded only when they run: no other command needs it.
 */
export function runCommands({ environment }: CliParts): readonly Command[] {
  const standalone = new Command('standalone')
    .description('All of it in one process, as npm start does; redis-server has to be installed, or REDIS_URL set')
    .action(async () => (await import('#services/standalone/run.ts')).runStandalone(environment));
  const roles = ROLE_NAMES.map((name) =>
    new Command(name)
      .description(`${DOES[name]}: one role, on the stores of EVENTSTORE_URL and REDIS_URL`)
      .action(async () => (await import('#services/role-process/run.ts')).runRole(name, environment)),
  );
  return [standalone, ...roles];
}
