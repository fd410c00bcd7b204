import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';

/**
 * Replies to a command that is wrong, which is a bug. All other replies are about the server, its limits or the rights of
 * the user: they refuse a command for now, which had no effect, and a later command may succeed.
 */
const IS_BUG =
  /^(?:WRONGTYPE|NOSCRIPT|ERR(?! (?:max|DISABLED|unknown command|command not available|this instance)))\b/i;

/**
 * Maps errors of ioredis: `store_unavailable` if Redis is away, slow or refuses writes; unchanged if the command is
 * wrong, which is a bug.
 */
export function redisFault(error: unknown): unknown {
  if (error instanceof Fault) return error;
  if (isReplyError(error) && IS_BUG.test(error.message)) return error;
  return storeUnavailable('Redis', error);
}

/** Whether Redis answered with an error, as opposed to not answering. */
export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** Awaits a reply and maps its errors by {@link redisFault}. */
export async function guarded<T>(reply: Promise<T>): Promise<T> {
  try {
    return await reply;
  } catch (error) {
    throw redisFault(error);
  }
}

/** The reply of `RedisClient.values`. */
export type Values = readonly (Buffer | null | Error)[];

/** @throws the first fault among the values */
export function bytesOf(values: Values): (Buffer | null)[] {
  return values.map((value) => {
    if (value instanceof Error) throw value;
    return value;
  });
}

/** Decodes UTF-8. @throws the first fault among the values */
export function textsOf(values: Values): (string | null)[] {
  return bytesOf(values).map((value) => value && value.toString());
}
