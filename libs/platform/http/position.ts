import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { Fault } from '#libs/kernel/faults.ts';
import { invalid } from './errors.ts';
import type { HttpServerOptions } from './server-options.ts';

/** A revision in a stream: the last one that a command wrote, or the lowest one that a read accepts. */
export interface Position {
  readonly stream: string;
  readonly revision: number;
}

export const POSITION_HEADER = 'parley-position';
const WAIT_MS = 2_000;
const payload = z.tuple([z.string().min(1).max(256), z.int().min(0)]);

export function setPosition(request: FastifyRequest, reply: FastifyReply, position: Position): void {
  const context = ['position', request.principal.organizationId];
  void reply.header(POSITION_HEADER, request.server.tokens.seal(context, [position.stream, position.revision]));
}

/** The position that an answer to the caller's organization contained; undefined if it did not. */
export function positionIn(request: FastifyRequest, token: string): Position | undefined {
  const context = ['position', request.principal.organizationId];
  const opened = payload.safeParse(request.server.tokens.open(context, token));
  return opened.success ? { stream: opened.data[0], revision: opened.data[1] } : undefined;
}

/**
 * Waits at most two seconds for the position that the caller sent; without a waiter, only checks the token.
 * @throws ValidationFailure 422 for a forged token, or one of another organization; Fault 503 `not_caught_up`
 */
export async function awaitPosition(request: FastifyRequest, waiter: HttpServerOptions['positions']): Promise<void> {
  const token = request.headers[POSITION_HEADER];
  if (token === undefined) return;
  const { organizationId } = request.principal;
  const position = positionIn(request, String(token));
  if (position === undefined) throw invalid(['header', POSITION_HEADER], 'not a position of this API', token);
  if (waiter === undefined || (await waiter.waitUntilVisible({ ...position, organizationId }, WAIT_MS))) return;
  throw new Fault('not_caught_up', 'The position is not visible yet', { retryAfterSeconds: 1 });
}
