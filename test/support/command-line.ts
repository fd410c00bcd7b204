/**
 * Runs commands of `parley` in tests: in the test's own process, which takes milliseconds, or in a child process,
 * which takes a second and is needed to test start, exit codes, signals and limits.
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

import { type Command, CommanderError } from 'commander';

import type { CliParts } from '#services/cli/command-context.ts';
import { errorLines } from '#services/cli/errors.ts';
import { parleyProgram } from '#services/cli/run.ts';

export const PARLEY_COMMAND = join(import.meta.dirname, '../../services/cli/main.ts');
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export interface CommandRun {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type Environment = Readonly<Record<string, string>>;

export interface RunningCommand {
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** As Ctrl-C does, for commands that handle it. */
  interrupt(): void;
  /** As a reader that closes the pipe does. */
  closeOutput(): void;
  readonly ended: Promise<CommandRun>;
}

/** Starts a command in this process. */
export function startParleyCommand(environment: Environment, ...args: string[]): RunningCommand {
  let [stdout, stderr, isClosed] = ['', '', false];
  const interrupts = new Set<() => void>();
  const parts: CliParts = {
    environment,
    print: (text) => (stdout += text),
    async write(text) {
      if (isClosed) throw Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
      stdout += text;
    },
    tell: (line) => (stderr += `parley: ${line}\n`),
    onInterrupt(listener) {
      interrupts.add(listener);
      return () => interrupts.delete(listener);
    },
    screen: undefined,
    terminal: undefined,
  };
  async function run(): Promise<number> {
    const program = await parleyProgram(parts, args[0]);
    for (const command of withSubcommands(program)) {
      command
        .exitOverride()
        .configureOutput({ writeOut: (text) => (stdout += text), writeErr: (text) => (stderr += text) });
    }
    try {
      await program.parseAsync(args, { from: 'user' });
      return 0;
    } catch (error) {
      if (error instanceof CommanderError) return error.exitCode;
      for (const line of errorLines(error)) stderr += `parley: ${line}\n`;
      return 1;
    }
  }
  return {
    stdout: () => stdout,
    stderr: () => stderr,
    interrupt: () => interrupts.forEach((listener) => listener()),
    closeOutput: () => (isClosed = true),
    ended: run().then((exitCode) => ({ exitCode, stdout, stderr })),
  };
}

/** Runs a command in this process, to its end. */
export function runParley(environment: Environment, ...args: string[]): Promise<CommandRun> {
  return startParleyCommand(environment, ...args).ended;
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

/**
 * `parley` for shells that a test starts: a definition in bash, by which commands run in this process, with the environment
 * of the shell, but in the folder of this process.
 *
 * @param socket path of a Unix socket
 */
export async function serveShells(socket: string) {
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      const [count, ...words] = body.split('\0').slice(0, -1);
      const variables = words.splice(Number(count)).map((pair) => pair.split(/=([^]*)/, 2));
      const { exitCode, stdout, stderr } = await runParley(Object.fromEntries(variables), ...words);
      response.end(`printf %s ${quoted(stdout)}; printf %s ${quoted(stderr)} >&2; (exit ${exitCode})`);
    });
  });
  await once(server.listen(socket), 'listening');
  const definition = `
parley() {
  local answer
  answer=$({ printf '%s\\0' $# "$@"; env -0; } | command curl -sS --unix-socket '${socket}' --data-binary @- http://parley/) || return
  eval "$answer"
}
`;
  return { definition, stop: () => void server.close() };
}

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

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
