import type { Timestamp } from '#libs/kernel/clock.ts';
import type { Actor, EventMetadata, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

/** What every command brings along besides its own data. */
export interface CommandContext {
  /** By it a command that is sent again is known in the log. */
  readonly commandId: EntityId;
  readonly organizationId: EntityId;
  readonly actor: Actor;
  readonly at: Timestamp;
  /** What this command belongs to; itself, if nothing else. */
  readonly correlationId?: string | undefined;
  /** The event or command that this one follows from; itself, if nothing else. */
  readonly causationId?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Since when (Unix milliseconds) this very command may have run already, and its events be in the log. */
  readonly repeatedSinceMs?: number | undefined;
  /** Called when the command was accepted or rejected on the state at the end of its stream, before it is answered. */
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
