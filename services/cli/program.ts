import { Command } from 'commander';
import { VERSION } from '#services/version.ts';
import { backupCommand } from './backup.command.ts';
import type { CliParts } from './command-context.ts';
import { configCommand } from './config.command.ts';
import { exportCommand } from './import/export.command.ts';
import { importCommand } from './import/import.command.ts';
import { keysCommand } from './keys.command.ts';
import { organizationsCommand } from './organizations.command.ts';
import { reactorsCommand } from './reactors.command.ts';
import { rebuildCommand } from './rebuild.command.ts';
import { runCommands } from './run.command.ts';
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
    .addCommand(importCommand(parts))
    .addCommand(exportCommand(parts))
    .addCommand(tailCommand(parts))
    .commandsGroup('Processes, which run until they are stopped:');
  for (const command of runCommands(parts)) program.addCommand(command);
  return program;
}
