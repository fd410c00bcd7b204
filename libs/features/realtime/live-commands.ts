import { hash } from 'node:crypto';

import { z } from 'zod';

import { systemClock } from '#libs/kernel/clock.ts';
import { sequenceOf, streamRevision, type ChannelSequence, type StreamRevision } from '#libs/kernel/event.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import {
  actorOf,
  answerOf,
  canonicalJson,
  conflict,
  HttpError,
  type IdempotencyStore,
  type LiveCommandCall,
  type LiveCommandType,
  runOnce,
  unauthorized,
  ValidationFailure,
} from '#libs/platform/http/index.ts';
import { joinedCall } from '#libs/platform/lifecycle/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';
import type { ChannelGrant } from '#libs/platform/live/index.ts';

import type { SubscriberAccess } from './access.ts';
import { faultsOf, type CommandFrame, type ErrorDetail } from './frames.ts';

const NAMESPACE: EntityId = '0f3a6f0c-3a51-5d0e-8d53-7d1e6f0a9b21';
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** A command is refused if the same command still runs in another process after this time. */
const WAIT_MS = 10_000;

/** A command as a client sent it; `data` is not parsed yet. */
export type LiveCommand = Pick<CommandFrame, 'id' | 'type'> & { readonly data: unknown };

export type LiveCommandOutcome =
  /** `seq` of the newest event that resulted; null for a command without events. */
  | { readonly ok: true; readonly seq: ChannelSequence | null }
  /** `retryAfter` in seconds. */
  | { readonly ok: false; readonly code: string; readonly detail: ErrorDetail; readonly retryAfter?: number };

/** The socket session that sent a command. */
interface CommandingSession {
  readonly id: string;
  /** Its channel is known to be archived. */
  readonly hasEnded?: boolean;
}

interface LiveCommandParts {
  readonly types: readonly LiveCommandType[];
  readonly access: Pick<SubscriberAccess, 'admit'>;
  readonly idempotency: IdempotencyStore;
  readonly log: Platform['log'];
}

/** A command with the ids that identify it when it is sent again. */
interface Request {
  readonly type: LiveCommandType;
  readonly call: LiveCommandCall<unknown>;
  readonly commandId: EntityId;
  readonly fingerprint: string;
}

/**
 * Runs the commands of sockets. Resolves once their events are durable, and with an outcome for every command that is
 * invalid, forbidden or currently impossible, too; rejects only for bugs.
 *
 * A command whose id is a UUID is remembered for 24 hours as REST remembers an `Idempotency-Key`, by principal and
 * channel: it may be sent again over another connection, to another process, and runs once. Any other id identifies a
 * command within its session: the same id with the same content is the same command there.
 */
export class LiveCommands {
  readonly #types: ReadonlyMap<string, LiveCommandType>;
  readonly #parts: Omit<LiveCommandParts, 'types'>;
  /** Commands that run in this process: a repeated command gets the same outcome. */
  readonly #running = new Map<EntityId, Promise<StreamRevision | null>>();

  constructor({ types, ...parts }: LiveCommandParts) {
    this.#types = new Map(types.map((type) => [type.type, type]));
    this.#parts = parts;
  }

  /** For the description of the protocol. */
  get types(): readonly LiveCommandType[] {
    return [...this.#types.values()];
  }

  async run(grant: ChannelGrant, command: LiveCommand, session: CommandingSession): Promise<LiveCommandOutcome> {
    try {
      // As strict as a request over REST: the socket of a revoked key may still be open.
      if ((await this.#parts.access.admit(grant)) === null) throw unauthorized();
      const revision = await this.#run(grant, command, session);
      return { ok: true, seq: revision === null ? null : sequenceOf(revision) };
    } catch (error) {
      return this.#refusal(error, command);
    }
  }

  #run(grant: ChannelGrant, command: LiveCommand, session: CommandingSession): Promise<StreamRevision | null> {
    const type = this.#types.get(command.type);
    if (type === undefined) {
      const known = [...this.#types.keys()].join(', ');
      throw new HttpError(422, 'unknown_command', `There is no command of this type; there are: ${known}`);
    }
    if (!grant.scopes.includes('write'))
      throw new HttpError(403, 'forbidden', 'The ticket, token or API key lacks the scope write');
    const request = requestOf(type, grant, command, session);
    if (!type.isDurable) {
      // The session's knowledge suffices: only durable commands are decided on the log.
      if (session.hasEnded === true) throw conflict('The channel is archived', 'archived');
      return type.run(request.call);
    }
    const run = () => (UUID.test(command.id) ? this.#runOnce(request) : type.run(request.call));
    return joinedCall(this.#running, request.commandId, run);
  }

  /** Runs the command unless another process runs it or has run it. */
  async #runOnce({ type, call, fingerprint }: Request): Promise<StreamRevision | null> {
    const { principal, channelId, context } = call;
    const { organizationId, principalId } = principal;
    const { idempotency: store, log } = this.#parts;
    const key = {
      // Keys of REST contain no space, so they cannot be equal.
      scope: { organizationId, principalId, key: `socket ${channelId}:${context.idempotencyKey}` },
      fingerprint,
      inFlight: 'Another process is running the command',
      mismatch: () => new HttpError(409, 'command_id_used', 'The id was used with another command'),
      waitMs: WAIT_MS,
      field: type.ownField?.(call),
    };
    const storing = {
      store,
      key,
      log: (error: unknown) => log.warn({ err: error }, 'the outcome of a command of a socket was not stored'),
    };
    let applied: Promise<void> | undefined;
    const onAppended = type.ownField && ((applying: Promise<void>) => void (applied = applying));
    const { revision } = await runOnce(storing, storedOutcome, async ({ begunAtMs, unknownSinceMs, absentAt }) => {
      const known = { repeatedSinceMs: begunAtMs, unknownSinceMs, absentAt, onAppended };
      return { revision: await type.run({ ...call, context: { ...context, at: systemClock.now(), ...known } }) };
    });
    // The outcome was stored meanwhile.
    await applied;
    return revision;
  }

  #refusal(error: unknown, { type }: LiveCommand): LiveCommandOutcome {
    if (error instanceof ValidationFailure) return { ok: false, code: 'invalid', detail: faultsOf(error) };
    const { status, code, detail, headers } = answerOf(error instanceof Error ? error : new Error(String(error)));
    if (status >= 500 && status !== 501)
      this.#parts.log[status === 500 ? 'error' : 'warn']({ err: error, type }, 'a command of a socket failed');
    const retryAfter = headers?.['retry-after'];
    return { ok: false, code, detail, ...(retryAfter !== undefined && { retryAfter: Number(retryAfter) }) };
  }
}

function requestOf(
  type: LiveCommandType,
  { organizationId, channelId, principalType, principalId, keyId, scopes, isMember }: ChannelGrant,
  { id, data }: LiveCommand,
  session: CommandingSession,
): Request {
  const fingerprint = hash('sha256', `${type.type}\n${canonicalJson(data)}`, 'base64url');
  const idempotencyKey = UUID.test(id) ? id.toLowerCase() : `${session.id}:${id}`;
  const commandId = derivedId(
    NAMESPACE,
    JSON.stringify([organizationId, principalType, principalId, channelId, idempotencyKey, fingerprint]),
  );
  const principal = { organizationId, principalType, principalId, keyId, scopes: new Set(scopes), isMember };
  const context = {
    commandId,
    organizationId,
    actor: actorOf(principal),
    isMember,
    at: systemClock.now(),
    correlationId: session.id,
    idempotencyKey,
  };
  return { type, call: { context, principal, channelId, data }, commandId, fingerprint };
}

const storedOutcome = z.object({ revision: z.int().transform(streamRevision).nullable() });
