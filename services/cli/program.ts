import { Command } from 'commander';
import { VERSION, describeConfig } from '#libs/platform/config/index.ts';
import { ROLES } from '#services/roles.ts';
import { backupCommand } from './backup.command.ts';
import { printRows, type CliParts, type OutputOptions } from './command-context.ts';
import { crawlCommand, searchCommand } from './crawl.command.ts';
import { exportCommand } from './import/export.command.ts';
import { importCommand } from './import/import.command.ts';
import { keysCommand } from './keys.command.ts';
import { organizationsCommand } from './organizations.command.ts';
import { reactorsCommand } from './reactors.command.ts';
import { rebuildCommand } from './rebuild.command.ts';
import { reportCommand } from './report.command.ts';
import { sweepCommand } from './sweep.command.ts';
import { tailCommand } from './tail.command.ts';
import { usersCommand } from './users.command.ts';

/** All commands. Stores are opened only when a command runs. */
export function parleyProgram(parts: CliParts): Command {
  const program = new Command('parley')
    .description(
      'Runs and administers Parley: the Parley that runs on DATA_DIR, the stores of EVENTSTORE_URL and REDIS_URL, or, if nothing runs, the data folder itself.',
    )
    .version(VERSION)
    .commandsGroup('Administration:')
    .addCommand(organizationsCommand(parts))
    .addCommand(usersCommand(parts))
    .addCommand(keysCommand(parts))
    .addCommand(configCommand(parts))
    .addCommand(reactorsCommand(parts))
    .addCommand(rebuildCommand(parts))
    .addCommand(backupCommand(parts))
    .addCommand(sweepCommand(parts))
    .addCommand(importCommand(parts))
    .addCommand(exportCommand(parts))
    .addCommand(tailCommand(parts))
    .commandsGroup('Knowledge:')
    .addCommand(crawlCommand(parts))
    .addCommand(searchCommand(parts))
    .addCommand(reportCommand(parts))
    .commandsGroup('Processes, which run until they are stopped:');
  for (const command of runCommands(parts)) program.addCommand(command);
  return program;
}

function configCommand(parts: CliParts): Command {
  return new Command('config')
    .description('Show every setting with its value and its source; secrets are hidden')
    .option('--json', 'print JSON')
    .action((options: OutputOptions) => {
      const variables = describeConfig(parts.environment);
      const rows = variables.map(({ name, value, source, description }) => ({ name, value, source, description }));
      printRows(parts, options, rows, ['name', 'value', 'source', 'description']);
    });
}

/** Each command runs until it receives a signal to stop. It loads its code only when it runs. */
function runCommands({ environment }: CliParts): readonly Command[] {
  const standalone = new Command('standalone')
    .description('Run all roles in one process, as npm start does; needs redis-server or REDIS_URL')
    .action(async () => {
      const { runStandalone } = await import('#services/standalone/run.ts');
      runStandalone(environment, { withBanner: process.stdout.isTTY });
    });
  const roles = ROLES.map((role) =>
    new Command(role.name)
      .description(`${role.does} (one role, on the stores of EVENTSTORE_URL and REDIS_URL)`)
      .action(async () => (await import('#services/role-process/app.ts')).runRole(role, environment)),
  );
  return [standalone, ...roles];
}
