import type { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { Fault } from '#libs/kernel/faults.ts';
import { unlessAborted, within } from '#libs/platform/lifecycle/index.ts';
import { ANSWERS, HttpError } from './errors.ts';

/** Uploads that take longer have to be resumed. */
const MAX_ARRIVAL_MS = 60 * 60_000;
/** `handlerTimeout` of routes that read their body with {@link arrivingBody}. */
export const ARRIVING_BODY_TIMEOUT_MS = MAX_ARRIVAL_MS + 60_000;

const arriving = new WeakSet<Socket>();

/** Whether a body that is read with {@link arrivingBody} is arriving on the connection. */
export function isBodyArriving(socket: Socket): boolean {
  return arriving.has(socket);
}

/**
 * The body of a request, which may take an hour to arrive. The deadline of requests bounds each pause instead.
 *
 * @param resumable of a caller that keeps what has arrived: the body ends when this signal aborts, and when the server
 *   begins to close
 * @throws HttpError 408 after a pause or an hour, 400 if the connection ends first; the reason of `resumable`; `Fault`
 *   `stopping`
 */
export async function* arrivingBody(
  { raw, server }: FastifyRequest,
  { resumable }: { readonly resumable?: AbortSignal } = {},
): AsyncGenerator<Uint8Array> {
  const maxPauseMs = server.server.requestTimeout;
  const endsAt = performance.now() + MAX_ARRIVAL_MS;
  // Destroying the request would destroy the connection, and with it the reply.
  const chunks = raw.iterator({ destroyOnReturn: false });
  const ending = resumable && AbortSignal.any([resumable, server.closing]);
  const nextChunk = (): Promise<IteratorResult<Uint8Array>> =>
    ending ? unlessAborted(next(chunks), ending) : next(chunks);
  arriving.add(raw.socket);
  try {
    for (;;) {
      const leftMs = Math.min(maxPauseMs, endsAt - performance.now());
      const { done, value } = await within(leftMs, nextChunk(), () => failure(408));
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (!server.closing.aborted || error !== server.closing.reason) throw error;
    throw new Fault('stopping', 'This process is stopping', { retryAfterSeconds: 2 });
  } finally {
    arriving.delete(raw.socket);
  }
}

async function next(chunks: AsyncIterator<Uint8Array>): Promise<IteratorResult<Uint8Array>> {
  try {
    return await chunks.next();
  } catch {
    throw failure(400);
  }
}

function failure(status: 400 | 408): HttpError {
  const { code, detail } = ANSWERS[status];
  return new HttpError(status, code, detail);
}
