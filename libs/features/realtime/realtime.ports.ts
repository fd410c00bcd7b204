/** What the realtime node asks of others. It knows sockets, positions and frames; it knows no category. */
import type { Timestamp } from '#libs/kernel/clock.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventFrame } from '#libs/platform/live/index.ts';

import type { ErrorDetail } from './frames.schemas.ts';

export type { LiveValue, LiveValues } from '#libs/platform/live/index.ts';

/** Who listens to which channel, by which key: what a ticket stands for. */
export interface Grant {
  readonly organizationId: EntityId;
  readonly channelId: EntityId;
  readonly principalType: 'user' | 'service';
  readonly principalId: EntityId;
  readonly keyId: EntityId;
  /** Those of the key when the ticket was issued. */
  readonly scopes: readonly string[];
  /** Whether the principal is a user who takes part in the channel, as far as is known: who is removed stops listening. */
  readonly takesPart: boolean;
  /** When the key ends by itself, in milliseconds since the Unix epoch; null if it does not. */
  readonly expiresAtMs: number | null;
}

/**
 * Port: one-time admission to a channel's socket.
 *
 * Guarantees: a value is redeemed at most once, within its life time, by whichever process comes first.
 * `redeem` gives null for every value that is unknown, used or expired, without saying which.
 * Omits: whether the grant still holds when it is redeemed: {@link ListenerAccess.admit} decides that.
 * Throws `store_unavailable` faults.
 */
export interface Tickets {
  issue(grant: Grant): Promise<{ readonly value: string; readonly expiresAt: Timestamp }>;
  redeem(value: string): Promise<Grant | null>;
}

/**
 * What a check of a key found: when it ends by itself, and how old the read is that this rests on; `lost` once the key is
 * revoked or expired, or its user is deactivated; `unknown` when that cannot be decided now.
 */
export type CheckedKey = { readonly expiresAtMs: number | null; readonly ageMs: number } | 'lost' | 'unknown';

/**
 * Port: who may open a connection, and who may keep it.
 *
 * Guarantees: a key and its user are decided on the log, as strictly as in the authentication of a request. One answer
 * of `checkKeys` and of `takingPart` per grant, in order.
 * Omits: what to do while nothing is known, and when the key expires between two checks: the caller keeps time.
 */
export interface ListenerAccess {
  /**
   * Whether the key behind a ticket still works and its user is active.
   *
   * @returns the grant with the present end of the key; null if the key has ended
   * @throws `Fault` `store_unavailable` when that cannot be decided
   */
  admit(grant: Grant): Grant | null | Promise<Grant | null>;
  checkKeys(grants: readonly Grant[]): Promise<readonly CheckedKey[]>;
  /**
   * Whether the user of each grant takes part in its channel now; null where that is not known or no user. It may have to
   * wait for a fold of the channel, so nothing that ends access waits for it.
   */
  takingPart(grants: readonly Grant[]): Promise<readonly (boolean | null)[]>;
  /** Tells at once of what is heard to end access, or may; until the returned function is called. */
  onChange(listener: (change: AccessChange) => void): () => void;
}

/** Those whom it concerns have lost access (`lost`), or may have (`doubtful`): then `check` knows. */
export interface AccessChange {
  readonly kind: 'lost' | 'doubtful';
  concerns(grant: Grant): boolean;
}

/** A command as a client sent it; `data` is not looked at yet. */
export interface LiveCommand {
  readonly id: string;
  readonly type: string;
  readonly data: unknown;
}

export type LiveCommandOutcome =
  | {
      readonly ok: true;
      /** Of the newest event that came of it; null for what leaves no event. */
      readonly seq: ChannelSequence | null;
    }
  | {
      readonly ok: false;
      readonly code: string;
      readonly detail: ErrorDetail;
      /** Seconds. */
      readonly retryAfter?: number;
    };

/** The socket that a command came over. */
export interface CommandingSession {
  readonly id: string;
  /** Whether its channel is known to be archived. */
  readonly isArchived?: boolean;
}

/**
 * Port: what a socket may ask to be done.
 *
 * Guarantees: resolves once the events are durable, with an outcome also for what is malformed, forbidden
 * or impossible just now. Does not throw, but for defects.
 */
export interface LiveCommands {
  run(grant: Grant, command: LiveCommand, session: CommandingSession): Promise<LiveCommandOutcome>;
}

export interface FramesOptions {
  /** Cancels the read of the event store when it aborts; the iteration then throws its reason. */
  readonly signal?: AbortSignal;
  /** Asked before each page: bytes that it may have, about, and one frame at least. Default: 1 MiB. */
  readonly pageBytes?: () => number;
}

/**
 * Port: the events of a channel as frames, out of the log itself.
 *
 * Guarantees: frames are contiguous, ascending, and the same bytes that were or will be published live.
 * Omits: the read model. A head that is told here may not be published yet.
 * Throws `store_unavailable` faults.
 */
export interface ChannelLog {
  /** Sequence of the newest event; null if the organization has no such channel. */
  head(organizationId: EntityId, channelId: EntityId): Promise<ChannelSequence | null>;
  /**
   * Pages from `after + 1` to what is the end at the time; each at most about 500 frames or 1 MiB. Holds
   * nothing open between pages, so that a slow reader costs nothing.
   */
  framesAfter(
    organizationId: EntityId,
    channelId: EntityId,
    after: ChannelSequence,
    options?: FramesOptions,
  ): AsyncIterable<readonly EventFrame[]>;
}

/**
 * Port: how far channels are known to have come, where that is cheap to ask.
 *
 * Guarantees: one sequence per channel, in order; never more than is in the log.
 * Omits: the newest events, maybe. Throws `store_unavailable` faults.
 */
export interface PublishedHeads {
  heads(
    channels: readonly { readonly organizationId: EntityId; readonly channelId: EntityId }[],
  ): Promise<readonly number[]>;
}
