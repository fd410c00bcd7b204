import { Command } from 'commander';

import { ROLES } from '#services/roles.ts';

import type { CliParts } from './command-context.ts';

/** Each command runs until it receives a signal to stop. It loads its code only when it runs. */
export function runCommands({ environment }: CliParts): readonly Command[] {
  const standalone = new Command('standalone')
    .description('Run all roles in one process, as npm start does; needs redis-server or REDIS_URL')
    .action(async () => (await import('#services/standalone/run.ts')).runStandalone(environment));
  const roles = ROLES.map((role) =>
    new Command(role.name)
      .description(`${role.does} (one role, on the stores of EVENTSTORE_URL and REDIS_URL)`)
      .action(async () => (await import('#services/role-process/app.ts')).runRole(role, environment)),
  );
  return [standalone, ...roles];
}
