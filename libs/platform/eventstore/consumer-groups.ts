import type { StoredEvent } from './event-store.ts';

/** What a consumer group reads, and how the event store delivers it. */
export interface ConsumerGroup {
  /** The group of this name is created if it does not exist. */
  readonly name: string;
  /** Types of the events that the group consumes, of all streams. Fixed once the group exists. */
  readonly types: readonly string[];
  /**
   * Where a new group begins: at the start of the log, or at its end as of the creation, where it may deliver the last
   * event that was there. Not used once the group exists.
   */
  readonly from: 'start' | 'end';
  /**
   * Recognizes the names of former groups. A new group that would begin at the end begins at the latest of their
   * checkpoints. Its creation deletes the former groups that have neither members nor parked events.
   */
  isFormer?(name: string): boolean;
  /**
   * The event store delivers an event again that has not been answered within this time. The longest one that a member
   * has ever asked for applies.
   */
  readonly messageTimeoutMs: number;
}

export interface ConsumeOptions {
  /** Most events that this member holds without having answered them. */
  readonly bufferSize: number;
  /** Ends the membership: the event store hands what was not answered to other members at once. */
  readonly signal: AbortSignal;
}

/** One delivery of an event. Answers after the membership has ended are ignored: the event is delivered again. */
export interface Delivery {
  readonly event: StoredEvent;
  /** The event is done with. */
  acknowledge(): void;
  /** Puts the event aside, with the reason, until an operator retries it. */
  park(reason: string): void;
}

export type ConsumedItem =
  | { readonly kind: 'joined' }
  | { readonly kind: 'delivery'; readonly delivery: Delivery }
  /** The membership is lost: everything delivered and not answered is delivered again, to some member. */
  | { readonly kind: 'left' };

export interface ConsumerGroupStatus {
  readonly name: string;
  readonly members: number;
  /** Events delivered and not answered, by all members. */
  readonly inFlight: number;
  /** Events read and not delivered, or to be delivered again. */
  readonly waiting: number;
  readonly parked: number;
  /**
   * Distance between the group's checkpoint and the head of the log, in units of the commit position; 0 while no event
   * is unanswered, as a group writes no checkpoint of events that it filters out.
   */
  readonly lag: number;
}

export interface ParkedEvent {
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly parkedAt: string;
  readonly reason: string;
}

/**
 * Distributes the events of the log over the members of a group: persistent subscriptions to `$all`.
 *
 * Guarantees: every event of the group's types, from its beginning on, is delivered at least once, until a member
 * acknowledges or parks it, also across restarts of the event store; the events of a stream go to one member, in order
 * at their first delivery; what a member holds that leaves, dies or falls silent is delivered to others.
 *
 * Omissions: no order among repeated deliveries; an event may be with two members at once, when one of them was silent
 * for too long.
 */
export interface ConsumerGroups {
  /** Joins the group, and joins again with backoff whenever the membership is lost. Ends when the signal aborts. */
  consume(group: ConsumerGroup, options: ConsumeOptions): AsyncIterable<ConsumedItem>;
  /** The groups whose names begin with `prefix`. Errors: `Fault`. */
  list(prefix: string): Promise<readonly ConsumerGroupStatus[]>;
  /** Oldest first. Errors: `Fault`. */
  parked(name: string, limit: number): Promise<readonly ParkedEvent[]>;
  /** Delivers the parked events again. Errors: `Fault`. */
  retryParked(name: string): Promise<void>;
}
