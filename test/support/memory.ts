/** How much memory another process holds once its garbage is collected. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { eventually } from './eventually.ts';

export interface MemoryReport {
  /** Bytes in the heap, and bytes of buffers outside it. */
  readonly heap: number;
  readonly rss: number;
}

const PRELOAD = join(import.meta.dirname, 'memory-report.process.ts');

/** What the process has to be started with, beside MEMORY_REPORT in its environment: the file for its answers. */
export const MEMORY_REPORT_FLAGS: readonly string[] = ['--expose-gc', '--import', PRELOAD];
/** The same as NODE_OPTIONS. */
export const MEMORY_REPORT_OPTIONS = MEMORY_REPORT_FLAGS.join(' ');

/** @param file that MEMORY_REPORT names */
export async function memoryOf(pid: number, file: string): Promise<MemoryReport> {
  await rm(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  return eventually(async () => JSON.parse(await readFile(file, 'utf8')) as MemoryReport);
}
