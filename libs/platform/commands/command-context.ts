import type { Timestamp } from '#libs/kernel/clock.ts';
import type { Actor, EventMetadata, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore, StoreClock } from '#libs/platform/eventstore/index.ts';
import type { Projector, ReadModel } from '#libs/platform/readmodel/index.ts';
import type { TipCache } from '#libs/platform/streams/index.ts';

export interface CommandStores {
  readonly store: EventStore;
  /** One for the whole process. */
  readonly clock: StoreClock;
  readonly readModel: ReadModel;
  readonly projector: Projector;
}

export interface CommandHandlerOptions {
  /** Of all handlers of the process. Default: an own one. */
  readonly cache?: TipCache;
  /** Called when the read model could not be read or written. Commands succeed without it: their events are in the log. */
  readonly onApplyFailure?: (error: unknown) => void;
}

/** The data that every command has besides its own. */
export interface CommandContext {
  /** Identifies a repeated command in the log. */
  readonly commandId: EntityId;
  readonly organizationId: EntityId;
  readonly actor: Actor;
  /** The actor sees only channels in which it takes part, and administers those that it owns. Default: false. */
  readonly isMember?: boolean | undefined;
  /** Subscribers get no frames of its events, which happened long ago: they read them from the log. Default: false. */
  readonly isPast?: boolean | undefined;
  /** When the command arrived. Its events have this time, or that of the last event of the stream if that is later. */
  readonly at: Timestamp;
  /** Default: `commandId`. */
  readonly correlationId?: string | undefined;
  /** The event or command that this one follows from. Default: `commandId`. */
  readonly causationId?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Set if an earlier request may have run this command: the earliest time of its events, in Unix milliseconds. */
  readonly repeatedSinceMs?: number | undefined;
  /**
   * Set if the store of idempotency keys does not answer: an earlier request may have run this command since then, in Unix
   * milliseconds. The log is searched for it.
   */
  readonly unknownSinceMs?: number | undefined;
  /** Where that request's answer said that its events are: no later revision of the stream is searched for them. */
  readonly repeatedPosition?: { readonly stream: string; readonly revision: number } | undefined;
  /**
   * The entity is expected not to exist: it is not read before it is created, only if the append shows that it does. With
   * a `commandId` that no earlier attempt has used: the event store acknowledges events whose ids it has.
   */
  readonly isNew?: boolean | undefined;
  /**
   * A revision that the caller has seen. A command without events is final on a state of this revision or later, which
   * this process may have in memory; by default only on the end of the stream.
   */
  readonly seenRevision?: StreamRevision | undefined;
  /**
   * A revision as of which the read model of the entity has nothing of this command; undefined if it has, or is not known. Read
   * while the idempotency key is taken.
   */
  readonly absentAt?: StreamRevision | undefined;
  /**
   * If set, a command with events returns as soon as they are durable and are being applied, and this gets a promise that resolves
   * when they are applied, or could not be. The caller answers its client after that. Default: the command returns then.
   */
  readonly onAppended?: ((applied: Promise<void>) => void) | undefined;
  /** Called when the command was accepted or rejected on the state at the end of its stream, before the result returns. */
  readonly onDecided?: (() => void) | undefined;
  /** Revisions of the entity that the caller allows the command to be decided on; any by default. */
  readonly ifMatch?: { allows(revision: StreamRevision): boolean } | undefined;
}

export function metadataOf(context: CommandContext): EventMetadata {
  const { at, organizationId, actor, commandId, traceparent, idempotencyKey } = context;
  return {
    at,
    organizationId,
    actor,
    commandId,
    $correlationId: context.correlationId ?? commandId,
    $causationId: context.causationId ?? commandId,
    ...(traceparent !== undefined && { traceparent }),
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}
