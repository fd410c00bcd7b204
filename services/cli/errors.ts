import { Fault } from '#libs/kernel/faults.ts';
import { refusalLines } from '#libs/platform/lifecycle/index.ts';

/** The command cannot be executed: one line with the reason. */
export class CliError extends Error {
  override readonly name = 'CliError';
}

/** Lines for the operator, with a stack trace only for bugs. */
export function errorLines(error: unknown): readonly string[] {
  if (error instanceof CliError || error instanceof Fault) return [error.message];
  return refusalLines(error) ?? [error instanceof Error ? (error.stack ?? error.message) : String(error)];
}
