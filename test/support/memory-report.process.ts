/**
 * Loaded into a server with `--import`, beside `--expose-gc` (see memory.ts): on SIGUSR2 it collects garbage and
 * writes what is left to the file that MEMORY_REPORT names.
 */
import { renameSync, writeFileSync } from 'node:fs';

import type { MemoryReport } from './memory.ts';

process.on('SIGUSR2', () => {
  const file = process.env['MEMORY_REPORT'];
  if (file === undefined || globalThis.gc === undefined) throw new Error('MEMORY_REPORT and --expose-gc are needed');
  // Twice: what the first one finalises, the second one frees.
  void globalThis.gc();
  void globalThis.gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  writeFileSync(`${file}.new`, JSON.stringify({ heap: heapUsed + external, rss } satisfies MemoryReport));
  renameSync(`${file}.new`, file);
});
