import { Fault } from '#libs/kernel/faults.ts';
import { refusalLines } from '#libs/platform/lifecycle/index.ts';

/** What the command was asked for cannot be done: one line that says why. */
export class CliError extends Error {
  override readonly name = 'CliError';
}

/** Lines for the operator; a stack only for what is our own mistake. */
export function errorLines(error: unknown): readonly string[] {
  if (error instanceof CliError || error instanceof Fault) return [error.message];
  return refusalLines(error) ?? [error instanceof Error ? (error.stack ?? error.message) : String(error)];
}
