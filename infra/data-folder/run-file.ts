/**
 * `run.json` holds the addresses of the Parley that runs on a data folder, for the command `parley`. It contains the
 * passwords of the private Redis and of the embedded event store, so only its owner can read it.
 */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { replaceFile } from '#libs/platform/files/index.ts';

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

export async function writeRunFile(dataDir: string, content: RunFile): Promise<void> {
  await replaceFile(pathOf(dataDir), `${JSON.stringify(content, null, 2)}\n`);
}

export async function removeRunFile(dataDir: string): Promise<void> {
  await rm(pathOf(dataDir), { force: true });
}

function pathOf(dataDir: string): string {
  return join(dataDir, 'run.json');
}
