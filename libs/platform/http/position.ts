import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { EntityId } from '#libs/kernel/ids.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { invalid } from './errors.ts';

/** A revision in a stream: the last one that a command wrote, or the lowest one that a read accepts. */
export interface Position {
  readonly stream: string;
  readonly revision: number;
}

/**
 * Port: waits until reads can see a position.
 *
 * Guarantees: resolves `true` once the read models of this process reflect `revision` (or a later one) of `stream`,
 * or `false` after `timeoutMs` milliseconds; never later.
 * Omissions: whether the stream exists, and its owner (a token only opens for its organization).
 */
export interface PositionWaiter {
  waitUntilVisible(position: Position & { readonly organizationId: EntityId }, timeoutMs: number): Promise<boolean>;
}

export const POSITION_HEADER = 'parley-position';
const WAIT_MS = 2_000;
const payload = z.tuple([z.string().min(1).max(256), z.int().min(0)]);

/** Sets the `Parley-Position` header to the position that a command wrote. */
export function setPosition(request: FastifyRequest, reply: FastifyReply, position: Position): void {
  const context = ['position', request.principal.organizationId];
  void reply.header(POSITION_HEADER, request.server.tokens.seal(context, [position.stream, position.revision]));
}

/**
 * The position that the caller sent, if any.
 * @throws ValidationFailure 422 for a forged token, or one of another organization
 */
export function positionOf(request: FastifyRequest): Position | undefined {
  const token = request.headers[POSITION_HEADER];
  if (token === undefined) return undefined;
  const opened = request.server.tokens.open(['position', request.principal.organizationId], String(token));
  const parsed = payload.safeParse(opened);
  if (!parsed.success) throw invalid(['header', POSITION_HEADER], 'not a position of this API', token);
  return { stream: parsed.data[0], revision: parsed.data[1] };
}

/**
 * Waits at most two seconds for the position of a read; without a waiter, only checks the token.
 * @throws Fault 503 `not_caught_up`
 */
export async function awaitPosition(request: FastifyRequest, waiter: PositionWaiter | undefined): Promise<void> {
  const position = positionOf(request);
  if (position === undefined || waiter === undefined) return;
  const { organizationId } = request.principal;
  if (await waiter.waitUntilVisible({ ...position, organizationId }, WAIT_MS)) return;
  throw new Fault('not_caught_up', 'The position is not visible yet', { retryAfterSeconds: 1 });
}
