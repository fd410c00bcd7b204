import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder and those above it, for its owner only; an existing one is left as it is. `mkdir` with `recursive`
 * would never return where the system answers ENOENT although the parent exists, as it does below `/proc`.
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
