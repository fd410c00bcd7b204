import type { StoredEvent } from './event-store.ts';

/** The events of a consumer group, and how the event store delivers them. */
export interface ConsumerGroup {
  /** The group of this name is created if it does not exist. */
  readonly name: string;
  /** Types of the events that the group consumes, in all streams. Fixed when the group is created. */
  readonly types: readonly string[];
  /**
   * Where a new group begins: at the start of the log, or at its end at that time; then it may deliver the last event
   * before the end. `former`, and `end` where there are former groups: where those were, which is the latest checkpoint of
   * the groups of one consumer, and the earliest of several consumers; `former` without them: at the start. A group without
   * a checkpoint was where it began. An existing group ignores it.
   */
  readonly from: 'start' | 'end' | 'former';
  /**
   * The consumer that a former group belongs to; null for a group that this one does not replace. Joining deletes former
   * groups that have neither members nor parked events.
   */
  formerConsumerOf?(groupName: string): string | null;
  /**
   * The event store redelivers an event that has no answer after this time. The longest timeout of all members, past
   * ones included, applies.
   */
  readonly messageTimeoutMs: number;
}

export interface ConsumeOptions {
  /** Limit of the unanswered events of this member. */
  readonly bufferSize: number;
  /** Ends the membership: the event store redelivers the unanswered events to other members at once. */
  readonly signal: AbortSignal;
}

/** One delivery of an event. Answers after the end of the membership are ignored: the event is redelivered. */
export interface Delivery {
  readonly event: StoredEvent;
  /** The event is handled. */
  acknowledge(): void;
  /** Parks the event, with the reason, until an operator retries it. */
  park(reason: string): void;
}

export type ConsumedItem =
  | { readonly kind: 'joined' }
  | { readonly kind: 'delivery'; readonly delivery: Delivery }
  /** The membership is lost: all unanswered events are redelivered, to any member. */
  | { readonly kind: 'left' };

export interface ConsumerGroupStatus {
  readonly name: string;
  readonly members: number;
  /** Unanswered events of all members. */
  readonly inFlight: number;
  /** Events that wait for their first delivery or a redelivery. */
  readonly waiting: number;
  readonly parked: number;
  /**
   * Distance between the group's checkpoint and the head of the log, in units of the commit position. 0 while no event
   * waits or is unanswered, because a group writes no checkpoint for events that it filters out.
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
 * acknowledges or parks it, also across restarts of the event store; all events of a stream are delivered to one member,
 * in order at their first delivery; the unanswered events of a member that leaves, dies or does not respond are
 * redelivered to others.
 *
 * Omissions: no order among redeliveries; two members may hold the same event when one of them did not respond in time.
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
