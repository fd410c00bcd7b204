/**
 * `run.json` holds the addresses of the Parley that runs on a data folder, for the command `parley`. It contains the
 * passwords of the private Redis and of the embedded event store, so only its owner can read it.
 */
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const runFile = z.object({
  pid: z.int().positive(),
  startedAt: z.string(),
  /** Absent while Parley is starting. */
  baseUrl: z.string().optional(),
  eventstoreUrl: z.string().optional(),
  redisUrl: z.string().optional(),
});

export type RunFile = z.infer<typeof runFile>;

/** The content of the file; undefined if it is missing or invalid. A killed process leaves its file: see {@link findRunning}. */
export async function readRunFile(dataDir: string): Promise<RunFile | undefined> {
  try {
    return runFile.parse(JSON.parse(await readFile(pathOf(dataDir), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Replaces the file atomically. */
export async function writeRunFile(dataDir: string, content: RunFile): Promise<void> {
  const next = `${pathOf(dataDir)}.next`;
  // Removed first, because the mode only applies to a new file.
  await rm(next, { force: true });
  await writeFile(next, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(next, pathOf(dataDir));
}

export async function removeRunFile(dataDir: string): Promise<void> {
  await rm(pathOf(dataDir), { force: true });
}

function pathOf(dataDir: string): string {
  return join(dataDir, 'run.json');
}
