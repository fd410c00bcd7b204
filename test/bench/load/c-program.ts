/** Programs in C, where a program in JavaScript would be the limit; compiled when a benchmark needs them. */
import { execFile } from 'node:child_process';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const compiled = new Map<string, Promise<string>>();

/**
 * @param source relative to test/bench
 * @returns the path of the program, the same for the whole run
 * @throws Error if there is no C compiler
 */
export function compile(source: string): Promise<string> {
  const known = compiled.get(source) ?? build(source);
  compiled.set(source, known);
  return known;
}

async function build(source: string): Promise<string> {
  const program = join(await mkdtemp(join(tmpdir(), 'parley-bench-c-')), basename(source, '.c'));
  try {
    await run('cc', ['-O2', '-o', program, join(import.meta.dirname, '..', source)]);
  } catch (cause) {
    throw new Error(`${source} could not be compiled: this row needs a C compiler by the name of cc`, { cause });
  }
  return program;
}
