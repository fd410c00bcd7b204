import { promisify } from 'node:util';

import { redacted } from '#libs/kernel/secrets.ts';
import type { Variables } from '#libs/platform/config/index.ts';

import type { CliParts } from './command-context.ts';
import { errorLines } from './errors.ts';
import { parleyProgram } from './program.ts';

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
      for (const signal of signals) process.on(signal, listener);
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
