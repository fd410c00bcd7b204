import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

import { z } from 'zod';

import { systemClock } from '#libs/kernel/clock.ts';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  answerOf,
  canonicalJson,
  conflict,
  HttpError,
  idempotencyInFlight,
  liveCommand,
  unauthorized,
  ValidationFailure,
} from '#libs/platform/http/index.ts';
import type { IdempotencyStore, LiveCaller, LiveCommandType } from '#libs/platform/http/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { faultsOf } from './frames.schemas.ts';
import type {
  CommandingSession,
  Grant,
  ListenerAccess,
  LiveCommand,
  LiveCommandOutcome,
  LiveCommands,
} from './realtime.ports.ts';

const NAMESPACE: EntityId = '0f3a6f0c-3a51-5d0e-8d53-7d1e6f0a9b21';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** How long a command waits for the outcome of the same command in another process, before it is refused. */
const WAIT_MS = 10_000;
const ASK_AGAIN_MS = 250;

/** There are no runs of agents yet; the protocol names how they will be ended. */
export const CANCEL_RUN = liveCommand({
  type: 'run.cancel',
  summary: 'End the run of an agent. Not implemented: answered by the error `not_implemented`',
  data: z.unknown(),
  isDurable: false,
  run: () => Promise.reject(new HttpError(501, 'not_implemented', 'There are no runs that could be cancelled')),
});

/** A command on its way, with all by which it is known again. */
interface Request {
  readonly type: LiveCommandType;
  readonly data: unknown;
  readonly principal: LiveCaller;
  readonly channelId: EntityId;
  readonly sessionId: string;
  readonly commandId: EntityId;
  readonly idempotencyKey: string;
  readonly fingerprint: string;
}

/**
 * Runs the commands of sockets, each as the feature describes it that does it.
 *
 * A command whose id is a UUID is remembered for 24 hours as REST remembers an `Idempotency-Key`, for its
 * principal and channel: it may be sent again over another connection, to another process, and is done once.
 * Any other id counts within its session: the same id with the same content is the same command there.
 */
export class FeatureLiveCommands implements LiveCommands {
  readonly #types: ReadonlyMap<string, LiveCommandType>;
  readonly #access: Pick<ListenerAccess, 'admit'>;
  readonly #idempotency: IdempotencyStore;
  readonly #log: Platform['log'];
  /** Commands that run in this process: who sends one again gets the same answer. */
  readonly #running = new Map<EntityId, Promise<StreamRevision | null>>();

  constructor(parts: {
    readonly types: readonly LiveCommandType[];
    readonly access: Pick<ListenerAccess, 'admit'>;
    readonly idempotency: IdempotencyStore;
    readonly log: Platform['log'];
  }) {
    this.#types = new Map(parts.types.map((type) => [type.type, type]));
    this.#access = parts.access;
    this.#idempotency = parts.idempotency;
    this.#log = parts.log;
  }

  /** What there is to be run, for the description of the protocol. */
  get types(): readonly LiveCommandType[] {
    return [...this.#types.values()];
  }

  async run(grant: Grant, command: LiveCommand, session: CommandingSession): Promise<LiveCommandOutcome> {
    try {
      // As strict as a request over REST: the socket of a revoked key may be open for a moment longer.
      if ((await this.#access.admit(grant)) === null) throw unauthorized();
      const revision = await this.#run(grant, command, session);
      return { ok: true, seq: revision === null ? null : sequenceOf(revision) };
    } catch (error) {
      return this.#refusal(error, command);
    }
  }

  #run(grant: Grant, command: LiveCommand, session: CommandingSession): Promise<StreamRevision | null> {
    const type = this.#types.get(command.type);
    if (type === undefined) {
      const known = [...this.#types.keys()].join(', ');
      throw new HttpError(422, 'unknown_command', `There is no command of this type; there are: ${known}`);
    }
    if (!grant.scopes.includes('write')) throw new HttpError(403, 'forbidden', 'The API key lacks the scope write');
    const request = requestOf(type, grant, command, session);
    if (!type.isDurable) {
      // Decided on what the socket knows, for no event is: what is durable is decided on the log.
      if (session.isArchived === true) throw conflict('The channel is archived', 'archived');
      return execute(request);
    }
    const running = this.#running.get(request.commandId);
    if (running !== undefined) return running;
    const run = UUID.test(command.id) ? this.#once(request) : execute(request);
    const outcome = run.finally(() => this.#running.delete(request.commandId));
    this.#running.set(request.commandId, outcome);
    return outcome;
  }

  /** Under its id, which other processes may be asked to run as well. */
  async #once(request: Request): Promise<StreamRevision | null> {
    const { principal, channelId, idempotencyKey, fingerprint } = request;
    const { organizationId, principalId } = principal;
    // The blank keeps it apart from what callers of REST can send as a key.
    const scope = { organizationId, principalId, key: `socket ${channelId}:${idempotencyKey}` };
    // If the other process has died, its lease ends meanwhile, and the command runs here.
    for (let waitedMs = 0; ; waitedMs += ASK_AGAIN_MS) {
      const start = await this.#idempotency.begin(scope, fingerprint);
      switch (start.state) {
        case 'completed':
          return revisionIn(start.response.body);
        case 'mismatch':
          throw new HttpError(409, 'command_id_used', 'The id was used with another command');
        case 'in_flight':
          if (waitedMs >= WAIT_MS) {
            throw idempotencyInFlight('Another process is running the command', start.leaseEndsInMs);
          }
          await delay(ASK_AGAIN_MS);
          continue;
        case 'started':
          return this.#first(request, scope, start);
      }
    }
  }

  async #first(
    request: Request,
    scope: Parameters<IdempotencyStore['abandon']>[0],
    { lease, begunAtMs }: { readonly lease: string; readonly begunAtMs?: number },
  ): Promise<StreamRevision | null> {
    let revision: StreamRevision | null;
    try {
      revision = await execute(request, begunAtMs);
    } catch (error) {
      // Refused, it has done nothing and may be tried again; with a fault, it is looked for then.
      await this.#quietly(this.#idempotency.abandon(scope, lease));
      throw error;
    }
    const response = { status: 200, headers: {}, body: JSON.stringify({ revision }) };
    await this.#quietly(this.#idempotency.complete(scope, lease, response));
    return revision;
  }

  /** What has happened has happened, whether it can be noted or not. */
  async #quietly(noting: Promise<void>): Promise<void> {
    try {
      await noting;
    } catch (error) {
      this.#log.warn({ err: error }, 'what became of a command of a socket was not stored');
    }
  }

  #refusal(error: unknown, { type }: LiveCommand): LiveCommandOutcome {
    if (error instanceof ValidationFailure) return { ok: false, code: 'invalid', detail: faultsOf(error) };
    const { status, code, detail, headers } = answerOf(error instanceof Error ? error : new Error(String(error)));
    if (status >= 500 && status !== 501)
      this.#log[status === 500 ? 'error' : 'warn']({ err: error, type }, 'a command of a socket failed');
    const retryAfter = headers?.['retry-after'];
    return { ok: false, code, detail, ...(retryAfter !== undefined && { retryAfter: Number(retryAfter) }) };
  }
}

function requestOf(
  type: LiveCommandType,
  { organizationId, channelId, principalType, principalId, keyId, scopes }: Grant,
  { id, data }: LiveCommand,
  session: CommandingSession,
): Request {
  const fingerprint = createHash('sha256')
    .update(`${type.type}\n${canonicalJson(data)}`)
    .digest('base64url');
  const idempotencyKey = UUID.test(id) ? id.toLowerCase() : `${session.id}:${id}`;
  return {
    type,
    data,
    principal: { organizationId, principalType, principalId, keyId, scopes: new Set(scopes) },
    channelId,
    sessionId: session.id,
    commandId: derivedId(
      NAMESPACE,
      JSON.stringify([organizationId, principalType, principalId, channelId, idempotencyKey, fingerprint]),
    ),
    idempotencyKey,
    fingerprint,
  };
}

/** @param begunAtMs since when (Unix milliseconds) another process may have run it */
function execute(request: Request, begunAtMs?: number): Promise<StreamRevision | null> {
  const { type, data, principal, channelId, sessionId, commandId, idempotencyKey } = request;
  const { organizationId, principalType, principalId } = principal;
  const context = {
    commandId,
    organizationId,
    actor: { type: principalType, id: principalId },
    at: systemClock.now(),
    correlationId: sessionId,
    idempotencyKey,
    repeatedSinceMs: begunAtMs,
  };
  return type.run({ context, principal, channelId, data });
}

const noted = z.object({ revision: z.int().nullable() });

function revisionIn(body: string): StreamRevision | null {
  const { revision } = noted.parse(JSON.parse(body));
  return revision === null ? null : streamRevision(revision);
}
