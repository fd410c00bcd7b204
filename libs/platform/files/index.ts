/** Files and folders. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder and its parents, for the owner only; an existing folder stays unchanged. `mkdir` with `recursive` never
 * returns where the system answers ENOENT although the parent exists, as below `/proc`.
 *
 * @throws the errors of the file system
 */
export function makeFolder(path: string): void {
  try {
    create(path);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    makeFolder(dirname(path));
    create(path);
  }
}

function create(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || !statSync(path).isDirectory()) throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
