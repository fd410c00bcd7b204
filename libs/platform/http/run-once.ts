import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';

import { storeUnavailable } from '#libs/kernel/faults.ts';

import { invalid } from './errors.ts';
import { idempotencyInFlight, type IdempotencyStore } from './idempotency.ts';

/**
 * Runs the part of a request that must not be repeated, for routes with `config.handlesIdempotencyKey`: their replies are
 * streams, which are not stored. Stored under the request's `Idempotency-Key` is the result of `work`, as JSON. Without a
 * key, every request runs.
 *
 * @throws HttpError 409 while another request holds the key; ValidationFailure 422 for another body; `Fault`
 *   `store_unavailable`; what `work` throws, and then the key is released
 */
export async function runOnce<T>(
  request: FastifyRequest,
  store: IdempotencyStore,
  schema: z.ZodType<T>,
  work: () => Promise<T>,
): Promise<T> {
  const run = request.idempotentRun;
  if (run === null) return work();
  const start = await store.begin(run.scope, run.fingerprint);
  switch (start.state) {
    case 'completed':
      return schema.parse(JSON.parse(start.response.body));
    case 'in_flight':
      throw idempotencyInFlight('A request with this Idempotency-Key is in flight', start.leaseEndsInMs);
    case 'mismatch':
      throw invalid(['header', 'idempotency-key'], 'the key was used with another request', run.scope.key);
    case 'started':
      if (start.unknownSinceMs !== undefined) throw storeUnavailable('redis');
  }
  run.repeatedSinceMs = start.begunAtMs;
  const tryStoring = (storing: Promise<void>): Promise<void> =>
    storing.catch((error: unknown) => {
      request.log.warn({ err: error, request_id: request.id }, 'the outcome of an idempotency key was not stored');
    });
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await tryStoring(store.abandon(run.scope, start.lease));
    throw error;
  }
  const response = { status: 200, headers: {}, body: JSON.stringify(result) };
  await tryStoring(store.complete(run.scope, start.lease, response));
  return result;
}
