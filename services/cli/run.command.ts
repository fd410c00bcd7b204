import { Command } from 'commander';

import { ROLES } from '#services/roles.ts';

import type { CliParts } from './command-context.ts';

/** Each command runs until it is told to stop. It loads what it runs, which no other command needs. */
export function runCommands({ environment }: CliParts): readonly Command[] {
  const standalone = new Command('standalone')
    .description('All of it in one process, as npm start does; redis-server has to be installed, or REDIS_URL set')
    .action(async () => (await import('#services/standalone/run.ts')).runStandalone(environment));
  const roles = ROLES.map((role) =>
    new Command(role.name)
      .description(`${role.does}: one role, on the stores of EVENTSTORE_URL and REDIS_URL`)
      .action(async () => (await import('#services/role-process/app.ts')).runRole(role, environment)),
  );
  return [standalone, ...roles];
}
