/**
 * The folder that holds all data of a standalone Parley. A marker file identifies the folder, its format and its
 * installation; a lock prevents concurrent use.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { access, constants, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { z } from 'zod';
import { codeOf } from '#libs/kernel/faults.ts';
import { parsedJson } from '#libs/kernel/json.ts';
import { makeFolder, replaceFile, tryLock, type FolderLock } from '#libs/platform/files/index.ts';
import { StartRefusal } from '#libs/platform/lifecycle/index.ts';

/** Raised by changes that older versions of Parley cannot work with. */
const DATA_FORMAT = 1;

const MARKER = 'parley.json';
const LOCK = 'parley.lock';
/** The first start writes a tenth of it. */
const ROOM_BYTES = 1024 * 1024;
/** Files of file managers, volumes and git: a folder with only these counts as empty. */
const IGNORED = new Set(['.DS_Store', '.gitkeep', '.gitignore', 'lost+found', `${MARKER}.next`]);

const marker = z.object({
  format: z.int().positive(),
  instanceId: z.string().min(1),
  createdAt: z.string(),
});
type Marker = z.infer<typeof marker>;

export interface DataFolder {
  /** Absolute. */
  readonly path: string;
  /** Constant for the lifetime of the folder. */
  readonly instanceId: string;
  /** Writes `run.json`, which says how to reach this process. {@link release} removes it. */
  publish(addresses: Pick<RunFile, 'baseUrl' | 'eventstoreUrl' | 'redisUrl'>): Promise<void>;
  release(): Promise<void>;
}

/**
 * Locks the folder for this process. An absent or empty folder becomes a data folder.
 *
 * @throws StartRefusal if the folder holds other files, or is of a newer Parley, in use, or not writable
 */
export async function openDataFolder(dataDir: string): Promise<DataFolder> {
  const path = resolve(dataDir);
  await makeWritable(path);
  await refuseForeign(path);
  await requireRoom(path);
  const lock = await lockFolder(path);
  try {
    const { instanceId } = (await readMarker(path)) ?? (await createMarker(path));
    const startedAt = new Date().toISOString();
    await writeRunFile(path, { pid: process.pid, startedAt });
    return {
      path,
      instanceId,
      publish: (addresses) => writeRunFile(path, { pid: process.pid, startedAt, ...addresses }),
      async release() {
        await removeRunFile(path);
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * The Parley that runs on the folder, for commands that talk to it. Undefined if none runs, even if a killed one left
 * its `run.json`.
 */
export async function findRunning(dataDir: string): Promise<RunFile | undefined> {
  const path = resolve(dataDir);
  const run = await readRunFile(path);
  if (run === undefined) return undefined;
  const lock = tryLock(join(path, LOCK));
  lock?.release();
  return lock === undefined ? run : undefined;
}

/**
 * Makes a folder the same installation as another one, which may be in use. The copy of the log must be there already.
 *
 * @throws StartRefusal if `from` is not a data folder
 */
export async function copyIdentity(from: string, to: string): Promise<void> {
  await writeMarker(resolve(to), await requireDataFolder(from));
}

/** @throws StartRefusal if `path` is not a data folder */
export async function requireDataFolder(path: string): Promise<Marker> {
  const found = await readMarker(resolve(path));
  if (found !== undefined) return found;
  throw new StartRefusal(`${resolve(path)} is no data folder of Parley's; name another with DATA_DIR=…`);
}

async function makeWritable(path: string): Promise<void> {
  try {
    makeFolder(path);
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const code = String(codeOf(error) ?? error);
    const why = code === 'EEXIST' || code === 'ENOTDIR' ? 'it, or a folder above it, is a file' : `no access (${code})`;
    throw new StartRefusal(`the data folder ${path} cannot be used: ${why}; choose another with DATA_DIR=…`);
  }
}

/**
 * Refuses a full disk, on which the components would fail one by one, some of them late. Writes a file instead of
 * reading the free space, because quotas and limits on the size of files have the same effect.
 */
async function requireRoom(path: string): Promise<void> {
  const file = join(path, `${LOCK}.room`);
  try {
    await writeFile(file, Buffer.alloc(ROOM_BYTES));
  } catch (error) {
    const code = String(codeOf(error) ?? error);
    throw new StartRefusal(
      `the disk of the data folder ${path} is full or takes no writes (${code}): make room, at least 1 MiB, and start again`,
    );
  } finally {
    await rm(file, { force: true });
  }
}

async function refuseForeign(path: string): Promise<void> {
  const entries = await readdir(path);
  if (entries.includes(MARKER)) return;
  // A lock without a marker: the first start was interrupted between the two.
  const foreign = entries.filter(
    (entry) => !IGNORED.has(entry) && !entry.startsWith(LOCK) && !isEventStore(join(path, entry)),
  );
  if (foreign.length > 0) {
    throw new StartRefusal(
      `the folder ${path} holds files that are not Parley's (${foreign.slice(0, 3).join(', ')}${foreign.length > 3 ? ', …' : ''}); choose another with DATA_DIR=…`,
    );
  }
}

/** Whether an embedded event store ran alone (`npm run eventstore`) before the first start: its log is kept. */
function isEventStore(path: string): boolean {
  return basename(path) === 'eventstore' && existsSync(join(path, 'events.mdb'));
}

async function lockFolder(path: string): Promise<FolderLock> {
  // A stopping Parley may be about to release the lock, and `findRunning` holds it for a moment.
  const lock = tryLock(join(path, LOCK), 500);
  if (lock !== undefined) return lock;
  const run = await readRunFile(path);
  const holder = run === undefined ? 'another Parley' : `a running Parley (pid ${run.pid})`;
  throw new StartRefusal(`the data folder ${path} is in use by ${holder}; stop it, or choose another with DATA_DIR=…`);
}

async function readMarker(path: string): Promise<Marker | undefined> {
  const file = join(path, MARKER);
  const content = await readFile(file, 'utf8').catch(() => undefined);
  if (content === undefined) return undefined;
  const format = marker.pick({ format: true }).safeParse(parsedJson(content));
  if (format.success && format.data.format > DATA_FORMAT) {
    throw new StartRefusal(
      `the data folder ${path} was written by a newer Parley (format ${format.data.format}, this one knows ${DATA_FORMAT}); use that version`,
    );
  }
  const parsed = marker.safeParse(parsedJson(content));
  if (!parsed.success)
    throw new StartRefusal(`${file} is damaged; restore it from a backup, or choose another DATA_DIR`);
  return parsed.data;
}

async function createMarker(path: string): Promise<Marker> {
  const created = { format: DATA_FORMAT, instanceId: randomUUID(), createdAt: new Date().toISOString() };
  await writeMarker(path, created);
  return created;
}

/** On disk before anything else is written into the folder. */
function writeMarker(path: string, content: Marker): Promise<void> {
  return replaceFile(join(path, MARKER), `${JSON.stringify(content, null, 2)}\n`);
}

/**
 * `run.json` holds the addresses of the Parley that runs on a data folder, for the command `parley`. It contains the
 * passwords of the private Redis and of the embedded event store, so only its owner can read it.
 */
const runFile = z.object({
  pid: z.int().positive(),
  startedAt: z.string(),
  /** Absent while Parley is starting. */
  baseUrl: z.string().optional(),
  eventstoreUrl: z.string().optional(),
  redisUrl: z.string().optional(),
});

type RunFile = z.infer<typeof runFile>;

/** The content of the file; undefined if it is missing or invalid. A killed process leaves its file: see {@link findRunning}. */
async function readRunFile(dataDir: string): Promise<RunFile | undefined> {
  try {
    return runFile.parse(JSON.parse(await readFile(pathOf(dataDir), 'utf8')));
  } catch {
    return undefined;
  }
}

async function writeRunFile(dataDir: string, content: RunFile): Promise<void> {
  await replaceFile(pathOf(dataDir), `${JSON.stringify(content, null, 2)}\n`);
}

async function removeRunFile(dataDir: string): Promise<void> {
  await rm(pathOf(dataDir), { force: true });
}

function pathOf(dataDir: string): string {
  return join(dataDir, 'run.json');
}
