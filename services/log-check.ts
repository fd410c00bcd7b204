/** Prevents Parley from running on a log that its read models were not built from. */
import { encodePosition } from '#libs/platform/eventstore/index.ts';
import {
  type BackgroundJob,
  startBackgroundJob,
  StartRefusal,
  throwUncaught,
  unlessAborted,
} from '#libs/platform/lifecycle/index.ts';
import { LogWitness } from '#libs/platform/readmodel/index.ts';
import { waitForRedis } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import { PROJECTIONS } from '#services/features.ts';

type CheckedStores = Pick<Platform, 'store' | 'feed' | 'redis'>;

const REDIS_WAIT_MS = 2_000;

/** The option by which the operator accepts the log as it is. */
export const ACCEPT_OPTION = '--accept-lost-events';

/** The log lacks an event that the read models hold. */
export class LostLog extends StartRefusal {}

/**
 * @throws LostLog when the log lacks an event that the read models hold; `Fault` while a store is unavailable, which decides
 *   nothing
 */
export async function refuseLostLog({ store, feed, redis }: CheckedStores): Promise<void> {
  // Fails with the reason if that is TLS.
  await store.ping();
  await waitForRedis(redis, REDIS_WAIT_MS);
  const missing = await new LogWitness(redis, PROJECTIONS).missingIn({ store, feed });
  if (missing === null) return;
  const head = await feed.head();
  throw new LostLog(
    `the log lacks events that the read models hold: event ${missing.revision} of ${missing.stream} ` +
      `(position ${missing.position}) is not in it; the log ${head === null ? 'is empty' : `ends at ${encodePosition(head)}`}. ` +
      'If another Parley uses this Redis, give this one a Redis, or a database number, of its own in REDIS_URL: nothing is lost then. ' +
      'Otherwise the log was lost, set back, or replaced by another one. Either restore it: put back its files, or a backup that holds the event. ' +
      'Or continue without the lost events: put back an older backup if there is one, and then run ' +
      `\`npx parley rebuild ${ACCEPT_OPTION}\`, which drops the read models and builds them from the log as it is then ` +
      '("Backup and restore" in docs/operations.md)',
  );
}

/** Checks the log once both stores answer. A refusal ends the process. */
export function startLogCheck(platform: Platform): BackgroundJob & { readonly passed: Promise<void> } {
  const passed = Promise.withResolvers<void>();
  const job = startBackgroundJob({
    name: 'log check',
    log: platform.log,
    backoff: { maxMs: 3_000 },
    run: async (signal) => passed.resolve(await unlessAborted(refuseLostLog(platform), signal)),
    isFatal: (error) => error instanceof StartRefusal,
    onFatal: throwUncaught,
  });
  return { ...job, passed: passed.promise };
}
