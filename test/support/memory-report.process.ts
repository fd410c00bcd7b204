/**
 * Loaded into a server with `--import`, beside `--expose-gc` (see memory.ts): on SIGUSR2 it collects garbage and
 * writes the remaining memory to the file of MEMORY_REPORT.
 */
import { renameSync, writeFileSync } from 'node:fs';

import type { MemoryReport } from './memory.ts';

process.on('SIGUSR2', () => {
  const file = process.env['MEMORY_REPORT'];
  if (file === undefined || globalThis.gc === undefined) throw new Error('MEMORY_REPORT and --expose-gc are needed');
  // Twice: the second collection frees what the first one finalised.
  void globalThis.gc();
  void globalThis.gc();
  const { heapUsed, external, rss } = process.memoryUsage();
  writeFileSync(`${file}.new`, JSON.stringify({ heap: heapUsed + external, rss } satisfies MemoryReport));
  renameSync(`${file}.new`, file);
});
