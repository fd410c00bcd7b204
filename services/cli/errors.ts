import { codeOf, Fault } from '#libs/kernel/faults.ts';
import { refusalLines } from '#libs/platform/lifecycle/index.ts';

/** The command cannot be executed: one line with the reason. */
export class CliError extends Error {
  override readonly name = 'CliError';
}

/** The message of a command whose organization is absent. */
export function noOrganization({ organization }: { readonly organization?: string }): string {
  return organization === undefined
    ? 'there is no organization yet; npm start or a restarted gateway creates the first one'
    : `there is no organization ${organization}`;
}

const FILE_PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file or folder',
  ENOTDIR: 'a part of the path is not a folder',
  EISDIR: 'it is a folder',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'the file is too large',
  EMFILE: 'too many files are open',
};

/** Whether the system refuses a file, and not the stores. */
export function isFileError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'path' in error;
}

/** Whether the reader of standard output, such as `head`, has closed it. */
export function isReaderGone(error: unknown): boolean {
  return codeOf(error) === 'EPIPE';
}

/** The reason of an error of the file system, for the operator. */
export function fileProblem({ code = '', message }: NodeJS.ErrnoException): string {
  return FILE_PROBLEMS[code] ?? message;
}

/** Files that are open already have no path in their errors. */
export function isWriteError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && error.syscall === 'write' && !('path' in error);
}

/** Lines for the operator, with a stack trace only for bugs. */
export function errorLines(error: unknown): readonly string[] {
  if (error instanceof CliError || error instanceof Fault) return [error.message];
  if (isFileError(error)) return [`${error.path} cannot be used: ${fileProblem(error)}`];
  if (isWriteError(error)) return [`the output cannot be written: ${fileProblem(error)}`];
  return refusalLines(error) ?? [error instanceof Error ? (error.stack ?? error.message) : String(error)];
}
