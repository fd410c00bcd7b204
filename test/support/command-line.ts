/**
 * Runs commands of `parley` in tests: in the test's own process, which takes milliseconds, or in a child process,
 * which takes a second and is needed to test start, exit codes, signals and limits.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { type Command, CommanderError } from 'commander';

import type { CliParts } from '#services/cli/command-context.ts';
import { errorLines } from '#services/cli/errors.ts';
import { parleyProgram } from '#services/cli/program.ts';

export const PARLEY_COMMAND = join(import.meta.dirname, '../../services/cli/main.ts');
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export interface CommandRun {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type Environment = Readonly<Record<string, string>>;

/** Runs a command in this process. */
export async function runParley(environment: Environment, ...args: string[]): Promise<CommandRun> {
  let [stdout, stderr] = ['', ''];
  const parts: CliParts = {
    environment,
    print: (text) => (stdout += text),
    write: async (text) => void (stdout += text),
    tell: (line) => (stderr += `parley: ${line}\n`),
    screen: undefined,
    terminal: undefined,
  };
  const program = await parleyProgram(parts, args[0]);
  for (const command of withSubcommands(program)) {
    command
      .exitOverride()
      .configureOutput({ writeOut: (text) => (stdout += text), writeErr: (text) => (stderr += text) });
  }
  try {
    await program.parseAsync(args, { from: 'user' });
    return { exitCode: 0, stdout, stderr };
  } catch (error) {
    if (error instanceof CommanderError) return { exitCode: error.exitCode, stdout, stderr };
    for (const line of errorLines(error)) stderr += `parley: ${line}\n`;
    return { exitCode: 1, stdout, stderr };
  }
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

/** Runs a command as a process whose environment is only `environment`. */
export async function runParleyProcess(environment: Environment, ...args: string[]): Promise<CommandRun> {
  const options = { env: { PATH: process.env['PATH'] ?? '', ...environment }, maxBuffer: MAX_OUTPUT_BYTES };
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [PARLEY_COMMAND, ...args], options);
    return { exitCode: 0, stdout, stderr };
  } catch (error) {
    if (!(error instanceof Error) || !('stdout' in error) || !('stderr' in error) || !('code' in error)) throw error;
    return { exitCode: Number(error.code), stdout: String(error.stdout), stderr: String(error.stderr) };
  }
}
