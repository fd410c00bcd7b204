import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';

import { storeUnavailable } from '#libs/kernel/faults.ts';

import {
  type IdempotencyKey,
  type IdempotencyStart,
  type IdempotencyStore,
  keyOfRequest,
  takeKey,
} from './idempotency.ts';

/**
 * Does work under a key, unless its result is stored there, as JSON. If the work fails, the key is released: what was
 * refused has had no effect and may be tried again; after a fault, the next run looks for its events.
 *
 * @param log called when the outcome could not be stored: the work was done all the same
 * @throws as {@link takeKey}; what `work` throws
 */
export async function runOnce<T>(
  { store, key, log }: { readonly store: IdempotencyStore; readonly key: IdempotencyKey; log(error: unknown): void },
  schema: z.ZodType<T>,
  work: (start: Extract<IdempotencyStart, { state: 'started' }>) => Promise<T>,
): Promise<T> {
  const start = await takeKey(store, key);
  if (start.state === 'completed') return schema.parse(JSON.parse(start.response.body));
  let result: T;
  try {
    result = await work(start);
  } catch (error) {
    await store.abandon(key.scope, start.lease).catch(log);
    throw error;
  }
  const response = { status: 200, headers: {}, body: JSON.stringify(result) };
  await store.complete(key.scope, start.lease, response).catch(log);
  return result;
}

/**
 * Runs the part of a request that must not be repeated, for routes with `config.handlesIdempotencyKey`: their replies are
 * streams, which are not stored. Without a key, every request runs.
 *
 * @throws HttpError 409 while another request holds the key; ValidationFailure 422 for another body; `Fault`
 *   `store_unavailable`; what `work` throws
 */
export async function runRequestOnce<T>(
  request: FastifyRequest,
  store: IdempotencyStore,
  schema: z.ZodType<T>,
  work: () => Promise<T>,
): Promise<T> {
  const run = request.idempotentRun;
  if (run === null) return work();
  const log = (error: unknown): void =>
    request.log.warn({ err: error, request_id: request.id }, 'the outcome of an idempotency key was not stored');
  return runOnce({ store, key: keyOfRequest(run), log }, schema, async ({ begunAtMs, unknownSinceMs }) => {
    if (unknownSinceMs !== undefined) throw storeUnavailable('Redis');
    run.repeatedSinceMs = begunAtMs;
    return work();
  });
}
