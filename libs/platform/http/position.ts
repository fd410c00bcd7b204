import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { EntityId } from '#libs/kernel/ids.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { invalid } from './errors.ts';

/** A place in one stream: what a command wrote last, and what a read wants to see at least. */
export interface Position {
  readonly stream: string;
  readonly revision: number;
}

/**
 * Port: waits until reads can see a position.
 *
 * Guarantees: resolves `true` once the read models that this process reads hold `revision` (or a
 * later one) of `stream`, `false` when `timeoutMs` milliseconds passed first; never later than that.
 * Omits: whether the stream exists, and whose it is (a token only opens for its organization).
 */
export interface PositionWaiter {
  waitUntilVisible(position: Position & { readonly organizationId: EntityId }, timeoutMs: number): Promise<boolean>;
}

export const POSITION_HEADER = 'parley-position';
const WAIT_MS = 2_000;
const payload = z.tuple([z.string().min(1).max(256), z.int().min(0)]);

/** Names what a command wrote in the `Parley-Position` header of its answer. */
export function setPosition(request: FastifyRequest, reply: FastifyReply, position: Position): void {
  const context = ['position', request.principal.organizationId];
  void reply.header(POSITION_HEADER, request.server.tokens.seal(context, [position.stream, position.revision]));
}

/**
 * The position that the caller sent along, if any.
 * @throws ValidationFailure 422 for a token that is made up, or another organization's
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
 * Waits at most two seconds for the position that a read names; without a waiter it is only checked.
 * @throws Fault 503 `not_caught_up`
 */
export async function awaitPosition(request: FastifyRequest, waiter: PositionWaiter | undefined): Promise<void> {
  const position = positionOf(request);
  if (position === undefined || waiter === undefined) return;
  const { organizationId } = request.principal;
  if (await waiter.waitUntilVisible({ ...position, organizationId }, WAIT_MS)) return;
  throw new Fault('not_caught_up', 'The position is not visible yet', { retryAfterSeconds: 1 });
}
