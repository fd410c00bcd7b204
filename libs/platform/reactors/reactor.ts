import { createHash } from 'node:crypto';

import type { DomainEvent, StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { EventCodec, StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { StreamType } from '#libs/platform/streams/index.ts';

/** A process as the handler of one event sees it. */
export interface Process<State, E extends DomainEvent> {
  readonly id: EntityId;
  readonly organizationId: EntityId;
  /** Folded from the process's own stream, up to the revision that the outcome is appended after. */
  readonly state: State;
  /** How often this worker has handled the event, from 1: only failures count. */
  readonly attempt: number;
  /** Aborts when the step's time is up, or when the worker stops and does not wait any longer. */
  readonly signal: AbortSignal;
  /** The same for every attempt at this effect of this step, in every worker. A UUID. */
  idempotencyKey(effect?: string): string;
  /** Of a command that is an effect of this step: with the id `idempotencyKey(effect)`, caused by the event. */
  commandContext(effect?: string): CommandContext;
  /**
   * The state of the stream that the event is in, at the event or later: from memory, if a reactor of this worker has processes
   * of this very type and has seen the event there.
   *
   * @throws `Fault` `store_unavailable`; CorruptEventError
   */
  stateAfterEvent<S>(type: StreamType<S, DomainEvent>): Promise<S>;
  /**
   * Appends an intent before an effect that cannot be repeated safely. Only one attempt can record it: a handler that
   * finds the intent in `state` must not start the effect, but report that it was started and not finished.
   *
   * @returns the state with the intent
   */
  recordIntent(...events: readonly E[]): Promise<State>;
}

/** An attempt failed, and the next one is to wait at least this long: the other side has asked for that. */
export class RetryLater extends Error {
  override readonly name = 'RetryLater';
  readonly afterMs: number;

  constructor(message: string, afterMs: number) {
    super(message);
    this.afterMs = afterMs;
  }
}

/** What the end of a process may need for its commands. */
export type EndedProcess = Pick<
  Process<unknown, never>,
  'id' | 'organizationId' | 'commandContext' | 'stateAfterEvent'
>;

/** Why a process is ended by its reactor. */
export interface GivenUp {
  readonly reason: 'deadline' | 'attempts';
  /** Of the last attempt, if there was one in this worker. */
  readonly lastError: string | null;
}

export interface ReactorLimits {
  /** Events handled at the same time by one worker, in each lane. Default 8. */
  readonly concurrency?: number;
  /** Those of them that one organization may have. Default: half of `concurrency`, rounded up. */
  readonly perOrganization?: number;
  /** Those of them that one organization may have of one resource. Default: no limit of its own. */
  readonly perResource?: number;
  /** Longest time that `handle` may take; what it returns later is dropped. Default 60,000. */
  readonly stepTimeoutMs?: number;
  /** Attempts at one event in one worker that `handle` may fail before the process is given up. Default 8. */
  readonly maxAttempts?: number;
  /**
   * Time from the start of a process (see `startRevision`) until it is given up; for one that does not exist or has not
   * started, or while the event store's clock is not known, from the first attempt at the event in this worker. Default
   * 900,000 (15 minutes).
   */
  readonly deadlineMs?: number;
  /** First and longest pause between two attempts; it doubles. Default 500 and 30,000. */
  readonly pauseMs?: { readonly first: number; readonly longest: number };
}

/**
 * Effects that follow from events. A process is a stream: its events record what is intended and what came of it, and
 * its state is their fold. A reactor is the consumer group that moves processes on.
 *
 * Guarantees:
 * - Every event of `on` is handled at least once, unless its process has ended by then, or holds a later event of `on`,
 *   which is responsible for it from then on. This holds across restarts of workers and of the event store, and does not
 *   depend on Redis.
 * - The outcome of an event is appended at exactly the revision that `handle` saw, and found by its id at every later
 *   delivery: it is recorded once. A worker that was paused and replaced cannot append.
 * - A process always ends. An event is acknowledged only when its process has ended or holds a later event of `on`.
 *   Otherwise the event is handled again, with pauses, until it ends or
 *   reaches a cap; then `giveUp` ends it. After a time without workers, the first worker to start does this.
 * - Concurrency is bounded, and one worker handles one event of a process at a time. Organizations take turns, and none
 *   has all slots: see `FairSlots`.
 * - Only events trigger effects: a rebuild of read models does not.
 *
 * Omissions:
 * - An effect may run more than once, also at the same time in two workers, when one of them was silent: pass
 *   `idempotencyKey` to the system that it reaches, or record an intent first.
 * - Attempts are counted in a worker and start anew in the next one; the deadline of a process is absolute.
 * - Events of different processes are handled in no particular order.
 * - Events that cannot be decoded, and processes that `giveUp` does not end, are parked until an operator retries them.
 */
export interface Reactor<State, E extends DomainEvent, Trigger extends DomainEvent = E> {
  /** Lower-case words with dashes; names the consumer group. */
  readonly name: string;
  /** Types of the events that it handles, as stored: old versions included. A change makes a new consumer group. */
  readonly on: readonly DomainEvent['type'][];
  /**
   * Where the log is handled from when the reactor is new or `on` has changed. `start` (default) is right for events
   * that belong to processes: those that have ended are passed over. `end` is for a new reactor on events that the log
   * already holds; it may see the last one of them, and continues where its latest former group was when `on` changes.
   * `former` is for a reactor that replaces others: it continues where the slowest of them was.
   */
  readonly from?: 'start' | 'end' | 'former';
  /** Names of the reactors that it replaces, besides its own with other types. */
  readonly formerly?: readonly string[];
  /** The streams of the processes, one each. */
  readonly process: StreamType<State, E>;
  /** Decodes the events of `on`. Default: the codec of the process. */
  readonly triggers?: EventCodec<Trigger>;
  /** The process that an event belongs to. Default: the one in whose stream it is. */
  processOf?(event: StreamEvent<Trigger>, stream: string): EntityId;
  isEnded(state: State): boolean;
  /**
   * Revision of the event that the deadline counts from, for processes that wait before they start, or start again after
   * they have ended. Null for one that has not started: its deadline counts from the first attempt at the event in this
   * worker. Default: the first event.
   */
  startRevision?(state: State): StreamRevision | null;
  /**
   * The lane whose slots the event takes: those that wait for others, such as fetches, do not hold up those that do not.
   * Default: all events have one lane.
   */
  laneOf?(event: StreamEvent<Trigger>): string;
  /** What several events of an organization may wait for, such as a host (`perResource`). Default: nothing. */
  resourceOf?(event: StreamEvent<Trigger>): string | null;
  /**
   * Milliseconds that the first attempt at an event waits: for work that others have usually done by then, or for more events.
   * Called once for each event. Default: none.
   */
  delayMs?(event: StreamEvent<Trigger>): number;
  /** Whether it is known here that the process has ended since the event. Saves the read of its stream. */
  hasEnded?(event: StreamEvent<Trigger>, processId: EntityId): boolean;
  /**
   * Whether nothing follows from an event of `on`, as far as that is known without a read: the event is acknowledged
   * without a step. What it is known from must be as new as the event. Its data and metadata are not validated yet.
   * Default: no.
   */
  isIrrelevant?(event: StoredEvent): boolean;
  /**
   * Does what follows from the event, and returns the events that record it. Without events, an existing process that
   * has not ended is handled again after a pause; a process that does not exist stays so.
   *
   * Errors: any; the event is handled again, after a `RetryLater` not before its time. A `Fault` (a store is away) is not counted as a failed attempt.
   */
  handle(event: StreamEvent<Trigger>, process: Process<State, E>): Promise<readonly E[]> | readonly E[];
  /**
   * The events that end a process that has reached a cap; `isEnded` must hold after them. May be none without a process.
   * May run more than once, as `handle`.
   *
   * Errors: after a `Fault`, it is called again; after any other error, the event is parked.
   */
  giveUp(
    state: State,
    why: GivenUp,
    event: StreamEvent<Trigger>,
    process: EndedProcess,
  ): Promise<readonly E[]> | readonly E[];
  readonly limits?: ReactorLimits;
}

// eslint-disable-next-line typescript/no-explicit-any -- the types are private to each reactor
export type AnyReactor = Reactor<any, any, any>;

const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** Declares a reactor. @throws TypeError for a name or events that it cannot have */
export function reactor<State, E extends DomainEvent, Trigger extends DomainEvent = E>(
  declared: Reactor<State, E, Trigger>,
): Reactor<State, E, Trigger> {
  const { name, on } = declared;
  if (!NAME.test(name)) throw new TypeError(`not a name for a reactor: ${name}`);
  if (on.length === 0) throw new TypeError(`the reactor ${name} handles no events`);
  const { types } = declared.triggers ?? declared.process.codec;
  for (const type of on) {
    if (!types.has(type)) throw new TypeError(`the reactor ${name} has no schema of ${type}`);
  }
  return declared;
}

/**
 * For `delayMs`: the first event does not wait, and those that come within `ms` after it begin at the same moment, so that
 * their steps share calls of the stores.
 */
export function gathered(ms: number): () => number {
  let nextMs = 0;
  return () => {
    const now = performance.now();
    if (now < nextMs) return nextMs - now;
    nextMs = now + ms;
    return 0;
  };
}

/** The consumer group of a reactor. The types are part of the name, as those of a group cannot change. */
export function groupNameOf({ name, on }: Pick<AnyReactor, 'name' | 'on'>): string {
  const types = createHash('sha256').update(on.toSorted().join(' ')).digest('hex');
  return `${GROUP_PREFIX}${name}-${types.slice(0, 8)}`;
}

/** Names of consumer groups of reactors begin with it. */
export const GROUP_PREFIX = 'reactor-';

/** The reactor's name of a group's name. */
export function reactorNameOf(groupName: string): string {
  return groupName.slice(GROUP_PREFIX.length, groupName.lastIndexOf('-'));
}
