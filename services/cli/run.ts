import { promisify } from 'node:util';
import { Command } from 'commander';
import { redacted } from '#libs/kernel/secrets.ts';
import { type Variables, VERSION, describeConfig } from '#libs/platform/config/index.ts';
import { ROLES } from '#services/roles.ts';
import { type CliParts, printRows, type OutputOptions } from './command-context.ts';
import { errorLines } from './errors.ts';

/** Runs the command that the arguments name. Prints a failure to standard error, with exit code 1. */
export async function runCli(argv: readonly string[], environment: Variables): Promise<void> {
  const parts: CliParts = {
    environment,
    print: (text) => void process.stdout.write(text),
    write: promisify((text: string, done: (error?: Error | null) => void) => void process.stdout.write(text, done)),
    // Names in files of others must not control the terminal.
    tell: (line) => printLine(line.replace(/\p{Cc}/gu, '\u{FFFD}')),
    onInterrupt(listener) {
      const signals = ['SIGINT', 'SIGTERM'] as const;
      for (const signal of signals) process.once(signal, listener);
      return () => signals.forEach((signal) => process.off(signal, listener));
    },
    screen: process.stdout.isTTY === true && !environment['NO_COLOR'] ? process.stdout : undefined,
    terminal: process.stderr.isTTY === true ? process.stderr : undefined,
  };

  // The reader of a pipe, such as `head`, may close it early.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });

  // Errors that no caller awaits, such as a store of another kind than its URL says.
  const end = (error: unknown): void => {
    printError(error);
    process.exit(1);
  };
  process.on('uncaughtException', end);
  try {
    await (await parleyProgram(parts, argv[2])).parseAsync(argv);
  } catch (error) {
    printError(error);
    process.exitCode = 1;
  } finally {
    process.off('uncaughtException', end);
  }
}

function printError(error: unknown): void {
  for (const line of errorLines(error)) printLine(redacted(line));
}

function printLine(line: string): void {
  process.stderr.write(`parley: ${line}\n`);
}

type CommandOf = (parts: CliParts) => Command;

/** Each command is loaded when it is called, or when the help lists them all. */
const ADMINISTRATION: Readonly<Record<string, () => Promise<CommandOf>>> = {
  organizations: async () => (await import('./organizations.command.ts')).organizationsCommand,
  users: async () => (await import('./users.command.ts')).usersCommand,
  keys: async () => (await import('./keys.command.ts')).keysCommand,
  config: async () => configCommand,
  reactors: async () => (await import('./reactors.command.ts')).reactorsCommand,
  rebuild: async () => (await import('./rebuild.command.ts')).rebuildCommand,
  backup: async () => (await import('./backup.command.ts')).backupCommand,
  sweep: async () => (await import('./sweep.command.ts')).sweepCommand,
  import: async () => (await import('./import/import.command.ts')).importCommand,
  export: async () => (await import('./import/export.command.ts')).exportCommand,
  tail: async () => (await import('./tail.command.ts')).tailCommand,
};
const KNOWLEDGE: typeof ADMINISTRATION = {
  crawl: async () => (await import('./knowledge.commands.ts')).crawlCommand,
  search: async () => (await import('./knowledge.commands.ts')).searchCommand,
  report: async () => (await import('./knowledge.commands.ts')).reportCommand,
};

/**
 * The program with the command that `name` names, or else with all commands. Stores are opened only when a command runs.
 */
export async function parleyProgram(parts: CliParts, name: string | undefined): Promise<Command> {
  const program = new Command('parley')
    .description(
      'Runs and administers Parley: the Parley that runs on DATA_DIR, the stores of EVENTSTORE_URL and REDIS_URL, or, if nothing runs, the data folder itself.',
    )
    .version(VERSION);
  if (name === '-V' || name === '--version') return program;
  const processes = runCommands(parts);
  const load = new Map(Object.entries({ ...ADMINISTRATION, ...KNOWLEDGE })).get(name ?? '');
  const called = load === undefined ? processes.find((command) => command.name() === name) : (await load())(parts);
  if (called !== undefined) return program.addCommand(called);
  program.commandsGroup('Administration:');
  for (const load of Object.values(ADMINISTRATION)) program.addCommand((await load())(parts));
  program.commandsGroup('Knowledge:');
  for (const load of Object.values(KNOWLEDGE)) program.addCommand((await load())(parts));
  program.commandsGroup('Processes, which run until they are stopped:');
  for (const command of processes) program.addCommand(command);
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
      .action(async () => (await import('#services/role-process/run.ts')).runRole(role, environment)),
  );
  return [standalone, ...roles];
}
