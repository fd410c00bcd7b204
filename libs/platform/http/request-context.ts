import { randomBytes } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { systemClock } from '#libs/kernel/clock.ts';
import { derivedId, newId, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { newSpanId, newTraceId, parseTraceparent, traceparentFor } from '#libs/platform/telemetry/index.ts';
import { actorOf, type Principal } from './auth.ts';
import type { BodyBudget } from './body-budget.ts';
import type { MemberRoute } from './members.ts';
import type { IdempotentRun, OwnField } from './idempotency.ts';
import type { PastReads } from './past-reads.ts';
import type { PublicAddress } from './public-address.ts';
import { positionIn } from './position.ts';
import type { RecentCallers } from './rate-limits.ts';
import { ifMatchOf } from './replies.ts';
import type { TokenSigner } from './signed-token.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Signs cursors and positions. */
    tokens: TokenSigner;
    pastReads: PastReads;
    callers: RecentCallers;
    bodies: BodyBudget;
    publicAddress: PublicAddress;
    /** Aborts when the server begins to close: responses that do not end by themselves must end. */
    closing: AbortSignal;
  }
  interface FastifyRequest {
    /** The caller. Throws on a route with `config.public`. */
    readonly principal: Principal;
    authenticated: Principal | null;
    /** W3C trace context of this request: the caller's trace or a new one, with a span of its own. */
    readonly traceparent: string;
    ownTraceparent: string | null;
    /** The caller's `Idempotency-Key`, if any. */
    readonly idempotencyKey: string | undefined;
    idempotentRun: IdempotentRun | null;
    /** The channel that the request of a member was admitted to; null for none. */
    memberChannel: EntityId | null;
    /** `performance.now()` of the first hook. */
    startedAt: number;
    /** Bytes that a `BodyBudget` holds for the body. */
    bodyBytes: number;
  }
  interface FastifyContextConfig {
    /** Scope that the key needs, such as `read`. Every route has either this or `public`. */
    scope?: string;
    /** The access of members to the route; without it, the route is closed to them. */
    members?: MemberRoute;
    /** No authentication: health, documentation. `counted`: what takes more than that, limited per address. */
    public?: boolean | 'counted';
    /**
     * Of a command whose reply needs nothing of the read model: the field that it alone writes, if there is one. It is looked up
     * while the request takes its key, for `CommandContext.absentAt`.
     */
    ownField?: ((request: FastifyRequest, commandId: EntityId) => OwnField | undefined) | undefined;
    /** A POST or PATCH with an ephemeral or secret answer: the answer is not stored, and every request runs. */
    ignoresIdempotencyKey?: boolean;
    /** A POST whose handler passes the key to `runRequestOnce`, because its answer is a stream. */
    handlesIdempotencyKey?: boolean;
  }
}

const PRINTABLE_ID = /^[A-Za-z0-9._:/+=-]{1,128}$/;
const processPrefix = randomBytes(6).toString('base64url');
let counter = 0;

/** The caller's `x-request-id` if it is well-formed, else a new id that is unique across processes. */
export function requestIdOf(raw: { headers: Record<string, string | string[] | undefined> }): string {
  const given = raw.headers['x-request-id'];
  if (typeof given === 'string' && PRINTABLE_ID.test(given)) return given;
  counter += 1;
  return `${processPrefix}-${counter.toString(36)}`;
}

export function beginReply(request: FastifyRequest, reply: FastifyReply): void {
  request.startedAt = performance.now();
  void reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
  // Only for callers that trace.
  if (request.headers.traceparent !== undefined) void reply.header('traceparent', request.traceparent);
}

/** `traceparent` for the span of this request: in the trace of its caller, or in a new one. */
export function traceparentOf(header: string | string[] | undefined): string {
  const caller = parseTraceparent(header?.toString());
  const { traceId = newTraceId(), isSampled = true } = caller ?? {};
  return traceparentFor({ traceId, spanId: newSpanId(), isSampled });
}

const COMMAND_NAMESPACE: EntityId = '6c1f5f0e-58a5-5c0b-9c39-0f6b1d7b8a52';

/**
 * Makes a crash between append and answer safe. With an `Idempotency-Key`, the command's id is derived from
 * organization, principal, key and content of the request, and its events contain it. A retry after the lease ended
 * passes the time since when the command may have run (`repeatedSinceMs`), and the command handler looks for its
 * events first. Without a key, every request is a new command.
 */
export function commandIdOf(run: IdempotentRun | null): EntityId {
  if (run === null) return newId();
  const { organizationId, principalId, key } = run.scope;
  const command = JSON.stringify([organizationId, principalId, key, run.fingerprint]);
  return (run.commandId ??= derivedId(COMMAND_NAMESPACE, command));
}

/** Call once per command: without an `Idempotency-Key`, each call creates a new command id. */
export function commandContext(request: FastifyRequest): CommandContext {
  const { organizationId, isMember } = request.principal;
  const run = request.idempotentRun;
  return {
    commandId: commandIdOf(run),
    organizationId,
    actor: actorOf(request.principal),
    isMember,
    at: systemClock.now(),
    correlationId: request.id,
    traceparent: request.traceparent,
    idempotencyKey: request.idempotencyKey,
    ...(run !== null && {
      repeatedSinceMs: run.repeatedSinceMs,
      unknownSinceMs: run.unknownSinceMs,
      repeatedPosition: run.repeatedPosition === undefined ? undefined : positionIn(request, run.repeatedPosition),
      absentAt: run.absentAt,
      onDecided: () => {
        run.isDecided = true;
      },
      ...(request.routeOptions.config.ownField !== undefined && {
        onAppended: (applied: Promise<void>) => {
          run.applied = applied;
        },
      }),
    }),
    ifMatch: ifMatchOf(request),
  };
}
