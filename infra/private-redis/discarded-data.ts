import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LifecycleLog } from '#libs/platform/lifecycle/index.ts';
import type { RedisProcess, RedisStartError } from './redis-process.ts';

/** Redis' append-only files, and a snapshot that another configuration left. */
const DATA = new Set(['appendonlydir', 'dump.rdb']);
const ASIDE = '.aside';

/**
 * Starts Redis without its data, after it ended on them. If that succeeds, its files are damaged and are removed. The
 * read models in them are rebuilt from the log. Lost are the replies stored under Idempotency-Keys, drafts, and the event
 * that the start compares the log with. If it fails, the files are not the cause and are kept.
 *
 * @param error of the start with the data, thrown again if the start without them fails
 */
export async function startWithoutData(
  dataDir: string,
  log: LifecycleLog,
  error: RedisStartError,
  start: () => Promise<RedisProcess>,
): Promise<RedisProcess> {
  const found = (await readdir(dataDir)).filter((name) => DATA.has(name));
  if (found.length === 0) throw error;
  for (const name of found) {
    // A process was killed between the two starts.
    await rm(join(dataDir, `${name}${ASIDE}`), { recursive: true, force: true });
    await rename(join(dataDir, name), join(dataDir, `${name}${ASIDE}`));
  }
  let redis: RedisProcess;
  try {
    redis = await start();
  } catch {
    for (const name of found) {
      await rm(join(dataDir, name), { recursive: true, force: true });
      await rename(join(dataDir, `${name}${ASIDE}`), join(dataDir, name));
    }
    throw error;
  }
  log.warn(
    { err: error, files: found },
    'discarded damaged files of the private Redis: the read models are rebuilt from the log; replies stored under ' +
      'Idempotency-Keys and drafts are lost, and this start cannot notice that the log lacks events',
  );
  for (const name of found) await rm(join(dataDir, `${name}${ASIDE}`), { recursive: true, force: true });
  return redis;
}
