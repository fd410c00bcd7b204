import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';

/** Replies by which Redis says "not now": the command had no effect and a later one may succeed. */
const UNAVAILABLE =
  /^(LOADING|READONLY|OOM|MISCONF|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|MOVED|ASK|BUSY|NOREPLICAS|NOAUTH|WRONGPASS)\b/;

/**
 * Turns what ioredis throws into what it means: Redis is away, slow or refuses writes (a
 * `store_unavailable` fault), or the command itself was wrong (the error as it is, a bug of ours).
 */
export function redisFault(error: unknown): unknown {
  if (error instanceof Fault) return error;
  if (isReplyError(error) && !UNAVAILABLE.test(error.message)) return error;
  return storeUnavailable('redis', error);
}

/** Whether Redis itself answered with an error, as opposed to not answering. */
export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Awaits a Redis reply, with its errors mapped by {@link redisFault}. */
export async function guarded<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (error) {
    throw redisFault(error);
  }
}
