import { cp, readdir, realpath } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';

import { Command } from 'commander';

import { messageOf } from '#libs/kernel/faults.ts';
import { copyIdentity, requireDataFolder } from '#infra/data-folder/index.ts';
import { backUpEventStore, requireReadableLog } from '#infra/embedded-eventstore/index.ts';
import { parseConfig } from '#libs/platform/config/index.ts';
import { makeFolder } from '#libs/platform/files/index.ts';

import { LostLog } from '#services/log-check.ts';

import { printOne, withSession, type CliParts, type OutputOptions } from './command-context.ts';
import { CliError } from './errors.ts';

export function backupCommand(parts: CliParts): Command {
  return new Command('backup')
    .description('Copy the log and the files of media, also while Parley runs, into a new data folder')
    .argument('<folder>', 'absent or empty; start Parley on it with DATA_DIR=<folder>')
    .option('--json', 'print JSON')
    .action((folder: string, options: OutputOptions) => run(parts, folder, options));
}

async function run(parts: CliParts, folder: string, options: OutputOptions): Promise<void> {
  const { dataDir, eventstoreUrl } = parseConfig(parts.environment);
  if (eventstoreUrl !== undefined) {
    throw new CliError('EVENTSTORE_URL names an external event store: use its own backup');
  }
  const target = resolve(folder);
  await requireDataFolder(dataDir);
  await refuseInside(dataDir, target);
  await takeEmpty(target);
  const log = join(dataDir, 'eventstore');
  await copying(() => requireReadableLog(log));
  const logCheck = await checkLog(parts);
  const startedAt = performance.now();
  // The log first: without the other files the folder is not a data folder, so Parley does not start on half a copy.
  const bytes = await copying(() => backUpEventStore(log, join(target, 'eventstore')));
  // After the log, so that all blobs which it names are among them.
  await copying(() => copyBlobs(join(dataDir, 'blobs'), join(target, 'blobs')), 'the files of media');
  await copyIdentity(dataDir, target);
  printOne(parts, options, {
    folder: target,
    bytes,
    log_check: logCheck,
    seconds: Number(((performance.now() - startedAt) / 1_000).toFixed(3)),
  });
}

/**
 * Refuses a log that lacks events which the read models hold: its backup could replace a better one. When the read
 * models cannot be reached the check is skipped: a full disk or a stopped Redis must not prevent a backup.
 */
async function checkLog(parts: CliParts): Promise<string> {
  try {
    await withSession(parts, async () => undefined, { catchUp: false });
    return 'passed';
  } catch (error) {
    if (error instanceof LostLog) throw error;
    return `skipped: ${messageOf(error)}`;
  }
}

/** A backup below the data folder would be lost with it. */
async function refuseInside(dataDir: string, target: string): Promise<void> {
  const source = await realpath(dataDir);
  // Resolves links of the nearest existing folder.
  let above = target;
  let found = await realPathOf(above);
  while (found === null) found = await realPathOf((above = dirname(above)));
  const inside = relative(source, found);
  if (inside === '' || !(inside === '..' || inside.startsWith(`..${sep}`))) {
    throw new CliError(`${target} is inside the data folder ${source}: name a folder outside of it`);
  }
}

function realPathOf(path: string): Promise<string | null> {
  return realpath(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new CliError(`${path} cannot be used: ${error.message}`);
  });
}

async function takeEmpty(target: string): Promise<void> {
  try {
    makeFolder(target);
    if ((await readdir(target)).length === 0) return;
  } catch (error) {
    throw new CliError(`${target} cannot be used: ${messageOf(error)}`);
  }
  throw new CliError(`${target} is not empty: name a new folder`);
}

async function copyBlobs(source: string, target: string): Promise<void> {
  const isComplete = (path: string): boolean => !['incoming', 'removed'].includes(relative(source, path));
  if ((await realPathOf(source)) !== null) await cp(source, target, { recursive: true, filter: isComplete });
}

async function copying<T>(step: () => Promise<T>, what = 'the log'): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw new CliError(`${what} could not be copied: ${messageOf(error)}`);
  }
}
