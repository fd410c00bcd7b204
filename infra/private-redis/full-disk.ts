import { statfs } from 'node:fs/promises';

import { pause, startBackgroundJob, type BackgroundJob, type LifecycleLog } from '#libs/platform/lifecycle/index.ts';

import { askRedis, type RedisAddress } from './ping.ts';

const CHECK_MS = 1_000;
/** Redis writes all of its data anew when it begins to save again. */
const ROOM_BYTES = 16 * 1024 * 1024;

/**
 * Lets Redis serve from memory while its disk is full. A Redis that cannot save refuses all writes and even PING, and so
 * tickets of websockets, although all of its data can be rebuilt from the log. It saves again once there is room. If it
 * dies meanwhile, it continues with the older data, which the read models' revisions and checkpoints bring up to date.
 */
export function serveOnFullDisk(redis: RedisAddress, dataDir: string, log: LifecycleLog): BackgroundJob {
  let saves = true;
  return startBackgroundJob({
    name: 'private redis on a full disk',
    log,
    async run(signal) {
      while (!signal.aborted) {
        await pause(CHECK_MS, signal);
        const refusal = await askRedis(redis, 'PING');
        if (refusal?.startsWith('-MISCONF')) {
          saves = (await askRedis(redis, 'CONFIG SET appendonly no')) !== '+OK';
          log.error({ reason: refusal, dataDir }, 'the private Redis cannot save its data, and serves it from memory');
        } else if (!saves && (await hasRoom(dataDir))) {
          saves = (await askRedis(redis, 'CONFIG SET appendonly yes')) === '+OK';
          if (saves) log.info({ dataDir }, 'the private Redis saves its data again');
        }
      }
    },
  });
}

async function hasRoom(folder: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize >= ROOM_BYTES;
}
