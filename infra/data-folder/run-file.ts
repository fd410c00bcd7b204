/**
 * `run.json` tells the `parley` command how to reach the Parley that runs on a data folder. It holds the
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

/** What the folder's file says; undefined when there is none or it makes no sense. It may be a left-over: see {@link findRunning}. */
export async function readRunFile(dataDir: string): Promise<RunFile | undefined> {
  try {
    return runFile.parse(JSON.parse(await readFile(pathOf(dataDir), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Replaces the file in one step: a reader sees the old one or the new one, whole. */
export async function writeRunFile(dataDir: string, content: RunFile): Promise<void> {
  const next = `${pathOf(dataDir)}.next`;
  // Removed first: the mode applies only to a file that is created.
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
