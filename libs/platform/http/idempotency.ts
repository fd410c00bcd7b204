import { createHash, hash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { StreamRevision } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { canonicalJson } from './signed-token.ts';
import { conflict, invalid } from './errors.ts';

/** Scope of a key: different principals may use the same key. */
export interface IdempotencyScope {
  readonly organizationId: string;
  readonly principalId: string;
  /** 1 to 255 characters, as the caller chose it. */
  readonly key: string;
}

/** An answer that can be repeated byte for byte. */
export interface StoredResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Kept for 24 hours, however full the store is: the request must not run again. */
  readonly isKept?: boolean;
}

/** A field of an entity's read model that only one command writes. */
export interface OwnField {
  /** The key of the stream revision that the hash reflects. */
  readonly revisionKey: string;
  readonly key: string;
  readonly field: string;
}

export type IdempotencyStart =
  /** The request holds the key; `lease` identifies it to `complete` and `abandon`. */
  | {
      readonly state: 'started';
      readonly lease: string;
      /**
       * Time (Unix milliseconds) at which an earlier request took the key whose outcome is unknown: its command may
       * have run, may still run, or not.
       */
      readonly begunAtMs?: number;
      /** The `Parley-Position` of that request's reply, which has expired. */
      readonly position?: string;
      /** A revision as of which the read model lacked the field that `begin` got; missing if it has it, or is not known. */
      readonly absentAt?: StreamRevision;
      /** The store does not answer. An earlier request may have run the command since this time (Unix milliseconds). */
      readonly unknownSinceMs?: number;
    }
  /** Another request holds the key. Its lease ends in `leaseEndsInMs`, unless its process renews it. */
  | { readonly state: 'in_flight'; readonly leaseEndsInMs: number }
  /** The key was used with another fingerprint. */
  | { readonly state: 'mismatch' }
  | { readonly state: 'completed'; readonly response: StoredResponse };

/**
 * Port: stores the answers to idempotency keys.
 *
 * Guarantees:
 * - `begin` is atomic: of any number of concurrent calls with one scope, one gets `started`.
 * - The store renews a lease until `complete` or `abandon` is called, for a minute at most. Without renewal it
 *   ends after a few seconds: when the process has died, when the reply to `begin` was lost, and when `complete`
 *   or `abandon` failed.
 * - The fingerprint is kept for 24 hours, so that a retry with another body is `mismatch` even after a crash.
 * - `complete` and `abandon` do nothing when the lease is no longer the holder's.
 * - After `complete`, `begin` with the same fingerprint is `completed` for 24 hours, or, for successes that are not
 *   `isKept`, until the store has no room for the reply. From then on it is `started` with `begunAtMs` and the position.
 * - While the store does not answer, `begin` is `started` with `unknownSinceMs`: the log decides whether the command has
 *   run (see `CommandContext.unknownSinceMs`). The outcome is stored once the store answers again.
 * - `complete` and `abandon` throw `storeUnavailable` when the store has stopped to answer since `begin`.
 * Omissions: exactly-once. A holder may die between its append and `complete`; see `commandIdOf`.
 */
export interface IdempotencyStore {
  /** @param field looked up while the key is taken */
  begin(scope: IdempotencyScope, fingerprint: string, field?: OwnField): Promise<IdempotencyStart>;
  complete(scope: IdempotencyScope, lease: string, response: StoredResponse): Promise<void>;
  abandon(scope: IdempotencyScope, lease: string): Promise<void>;
}

/** A request that runs under an idempotency key. */
export interface IdempotentRun {
  readonly scope: IdempotencyScope;
  readonly fingerprint: string;
  lease: string | undefined;
  /** Time at which the key was first taken, if an earlier request may have run this command. */
  repeatedSinceMs: number | undefined;
  /** `Parley-Position` of that request, if its reply was known. */
  repeatedPosition: string | undefined;
  /** Set while the store of keys does not answer: see {@link IdempotencyStart}. */
  unknownSinceMs: number | undefined;
  /** Set by `commandIdOf`. */
  commandId: EntityId | undefined;
  /** See `CommandContext.absentAt`. */
  absentAt: StreamRevision | undefined;
  /** Resolves when the events of the command are applied: the reply is stored meanwhile, and sent then. */
  applied: Promise<void> | undefined;
  /** The command was decided on the log, accepted or rejected. See `CommandContext.onDecided`. */
  isDecided: boolean;
  /**
   * Stored instead of the sent body, by routes that send a new secret. Such a reply never expires early: run again, the
   * request would make another secret, and another key.
   */
  storedBody: string | undefined;
}

const IDEMPOTENCY_HEADER = 'idempotency-key';
const POLL_MS = 250;
/** Stored headers; others do not belong to the content. */
const KEPT_HEADERS = ['content-type', 'etag', 'location', 'parley-position'] as const;
/** Rejections that may not apply to the same request a moment later; nothing was written. */
const TRANSIENT = new Set([401, 403, 408, 409, 412, 425, 429]);

/**
 * Reads the header and fingerprints the request; call before validation replaces the body.
 * @throws ValidationFailure 422 for a key of more than 255 characters, an empty one, or several
 */
export function idempotentRunOf(request: FastifyRequest): IdempotentRun | null {
  const key = request.headers[IDEMPOTENCY_HEADER];
  if (key === undefined) return null;
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw invalid(['header', IDEMPOTENCY_HEADER], 'a key has 1 to 255 visible ASCII characters', key);
  }
  const { organizationId, principalId } = request.principal;
  const { body } = request;
  const head = `${request.method} ${request.url}\n`;
  const fingerprint =
    body instanceof Uint8Array
      ? createHash('sha256').update(head).update(body).digest('base64url')
      : hash('sha256', head + canonicalJson(body), 'base64url');
  return {
    scope: { organizationId, principalId, key },
    fingerprint,
    lease: undefined,
    repeatedSinceMs: undefined,
    repeatedPosition: undefined,
    unknownSinceMs: undefined,
    commandId: undefined,
    absentAt: undefined,
    applied: undefined,
    isDecided: false,
    storedBody: undefined,
  };
}

/** A key that one holder at a time may run under. */
export interface IdempotencyKey extends Pick<IdempotentRun, 'scope' | 'fingerprint'> {
  /** Detail of the error while there is another holder. */
  readonly inFlight: string;
  /** The error for a key that was used with another fingerprint. */
  readonly mismatch: () => Error;
  /** How long another holder is waited for: if it has died, its lease ends within that. Default: not at all. */
  readonly waitMs?: number;
  /** See {@link IdempotencyStore.begin}. */
  readonly field?: OwnField | undefined;
}

/**
 * Takes the key, or finds what was stored under it.
 *
 * @throws HttpError 409 while there is another holder; `Retry-After` is the end of its lease if its process has died;
 *   `mismatch`
 */
export async function takeKey(
  store: IdempotencyStore,
  { scope, fingerprint, inFlight, mismatch, waitMs = 0, field }: IdempotencyKey,
): Promise<Extract<IdempotencyStart, { state: 'started' | 'completed' }>> {
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    const start = await store.begin(scope, fingerprint, field);
    if (start.state === 'started' || start.state === 'completed') return start;
    if (start.state === 'mismatch') throw mismatch();
    if (waitedMs >= waitMs) {
      const seconds = Math.max(1, Math.ceil(start.leaseEndsInMs / 1_000));
      throw conflict(inFlight, 'idempotency_in_flight', { 'retry-after': String(seconds) });
    }
    await delay(POLL_MS);
  }
}

export function keyOfRequest({ scope, fingerprint }: IdempotentRun): IdempotencyKey {
  return {
    scope,
    fingerprint,
    inFlight: 'A request with this Idempotency-Key is in flight',
    mismatch: () => invalid(['header', IDEMPOTENCY_HEADER], 'the key was used with another request', scope.key),
  };
}

/**
 * Takes the key of a request, or repeats its stored answer.
 *
 * @param field see {@link IdempotencyStore.begin}
 * @returns the reply when it has been sent
 * @throws HttpError 409 while another request holds it; ValidationFailure 422 for another body
 */
export async function beginIdempotent(
  run: IdempotentRun,
  store: IdempotencyStore,
  reply: FastifyReply,
  field?: OwnField,
): Promise<FastifyReply | undefined> {
  const start = await takeKey(store, { ...keyOfRequest(run), field });
  if (start.state === 'completed') {
    return reply
      .code(start.response.status)
      .headers({ ...start.response.headers, 'idempotency-replayed': 'true' })
      .send(Buffer.from(start.response.body));
  }
  run.lease = start.lease;
  run.absentAt = start.absentAt;
  run.unknownSinceMs = start.unknownSinceMs;
  run.repeatedSinceMs = start.begunAtMs;
  run.repeatedPosition = start.position;
  return undefined;
}

/**
 * For requests that make a secret each time they run: their events do not show whether an earlier request ran them.
 *
 * @throws `Fault` `store_unavailable` if the request has a key whose store does not answer
 */
export function requireKnownKey({ idempotentRun }: FastifyRequest): void {
  if (idempotentRun?.unknownSinceMs !== undefined) throw storeUnavailable('Redis');
}

/**
 * Stores the reply before it is sent, or releases the key. A success is stored; a rejection only if the command was
 * decided on the log, because any other may come from a read model that lags. Never throws: the command has run, and
 * its id makes a retry safe.
 */
export async function endIdempotent(
  run: IdempotentRun,
  store: IdempotencyStore,
  request: FastifyRequest,
  reply: FastifyReply,
  payload: unknown,
): Promise<void> {
  const { lease } = run;
  if (lease === undefined) return;
  run.lease = undefined;
  const status = reply.statusCode;
  const body = run.storedBody ?? bodyText(payload);
  const isFinal = status < 300 || (run.isDecided && status < 500 && !TRANSIENT.has(status));
  try {
    if (!isFinal || body === undefined) await store.abandon(run.scope, lease);
    else {
      const isKept = run.storedBody !== undefined;
      await store.complete(run.scope, lease, { status, headers: keptHeaders(reply), body, isKept });
    }
  } catch (error) {
    request.log.warn({ err: error, request_id: request.id }, 'the answer to an idempotency key was not stored');
  }
  await run.applied;
}

/** `undefined` for a stream, which is not stored. */
function bodyText(payload: unknown): string | undefined {
  if (payload === undefined || payload === null) return '';
  if (typeof payload === 'string') return payload;
  return Buffer.isBuffer(payload) ? payload.toString() : undefined;
}

function keptHeaders(reply: FastifyReply): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = reply.getHeader(name);
    if (value !== undefined) kept[name] = String(value);
  }
  return kept;
}
