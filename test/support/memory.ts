/** Measures the memory of another process after garbage collection. */
import { readFileSync } from 'node:fs';
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

/** Most resident memory that a process has had so far, in bytes, as the kernel counts it; 0 once it has ended. */
export function memoryPeakOf(pid: number): number {
  try {
    const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    return Number(kib ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** The sum of the peaks of a process and of its child processes that run now. */
export function memoryPeakOfTree(pid: number): number {
  const children = childrenOf(pid).map(memoryPeakOfTree);
  return children.reduce((sum, bytes) => sum + bytes, memoryPeakOf(pid));
}

function childrenOf(pid: number): readonly number[] {
  try {
    const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
    return pids.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
