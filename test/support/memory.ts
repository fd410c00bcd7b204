/** Measures the memory of another process after garbage collection. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { eventually } from './eventually.ts';

export interface MemoryReport {
  /** Bytes in the heap and in buffers outside it. */
  readonly heap: number;
  readonly rss: number;
}

const PRELOAD = join(import.meta.dirname, 'memory-report.process.ts');

/** Flags for the start of the process; MEMORY_REPORT in its environment names the file for its answers. */
export const MEMORY_REPORT_FLAGS: readonly string[] = ['--expose-gc', '--import', PRELOAD];
/** The same as NODE_OPTIONS. */
export const MEMORY_REPORT_OPTIONS = MEMORY_REPORT_FLAGS.join(' ');

/** @param file the value of MEMORY_REPORT */
export async function memoryOf(pid: number, file: string): Promise<MemoryReport> {
  await rm(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  return eventually(async () => JSON.parse(await readFile(file, 'utf8')) as MemoryReport);
}
