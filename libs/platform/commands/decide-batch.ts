import type { Timestamp } from '#libs/kernel/clock.ts';
import { foldEvents, type Decision, type Rejection } from '#libs/kernel/decider.ts';
import { streamRevision, type DomainEvent, type StreamEvent, type StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import { jsonBytesOf } from '#libs/platform/eventstore/index.ts';
import { entityKeys, type Lookup, type Projection } from '#libs/platform/readmodel/index.ts';
import { eventsToAppend, latestTime, type Tip } from '#libs/platform/streams/index.ts';

import { metadataOf, type CommandContext } from './command-context.ts';
import type { Counted, Found, Lookups } from './lookups.ts';

/** The result of a command: the state after it, and the revision of the stream. */
export type CommandResult<State, E extends DomainEvent, R extends Rejection> =
  | {
      readonly ok: true;
      readonly state: State;
      readonly revision: StreamRevision;
      /** The events of the command. */
      readonly events: readonly StreamEvent<E>[];
      /** An earlier request appended the events: `state` is the current one, not the one after them. */
      readonly isRepeated?: boolean;
    }
  | { readonly ok: false; readonly rejection: R };

/** Pure. `next` is the revision that the first event of the command would get. */
export type Decide<State, E extends DomainEvent, R extends Rejection> = (
  state: State,
  at: { readonly next: StreamRevision; readonly found: Found; readonly counted: Counted },
) => Decision<E, R>;

/** Values that a decision needs besides the state: the same for all states, or for the state at the beginning of its batch. */
export type NeededLookups<State> = readonly Lookup[] | ((state: State) => readonly Lookup[]);

/** A command in a queue. */
export interface Waiting<State, E extends DomainEvent> {
  readonly id: EntityId;
  readonly context: CommandContext;
  readonly decide: Decide<State, E, Rejection>;
  readonly lookups: NeededLookups<State>;
  resolve(result: CommandResult<State, E, Rejection>): void;
  reject(error: unknown): void;
}

/** Settles a command whose events are durable and are being applied. `applied` does not reject. */
export type Answer = (applied: Promise<void>) => void;

const afterApply =
  (settle: () => void): Answer =>
  (applied) =>
    void applied.then(settle);

/** The decisions on a batch of commands, to be appended. */
export interface Decided<State, E extends DomainEvent> {
  readonly answers: readonly Answer[];
  readonly events: readonly StreamEvent<E>[];
  /** Of the events as JSON. */
  readonly bytes: number;
  readonly after: Tip<State>;
  /** Whether all events are of commands with {@link CommandContext.isPast}. */
  readonly isPast: boolean;
  /** Commands that did not fit into one append. */
  readonly rest: readonly Waiting<State, E>[];
}

/** An append is limited to 1 MiB, including metadata and framing. */
const MAX_BATCH_BYTES = 700_000;
/** Of an event beside its type, data and metadata: its id, its revision, and framing. */
const EVENT_BYTES = 128;

/**
 * Decides commands of one entity, each on the state after the previous one. Times of events do not go back: a command
 * whose time is before that of the last event gets the time of that event.
 *
 * @param timeOf the time of a command, as the event store's clock shows it
 */
export function decideBatch<State, E extends DomainEvent>(
  projection: Projection<State, E>,
  start: Tip<State>,
  batch: readonly Waiting<State, E>[],
  lookups: Lookups,
  timeOf: (context: CommandContext) => Timestamp,
): Decided<State, E> {
  const answers: Answer[] = [];
  const events: StreamEvent<E>[] = [];
  let tip = start;
  let bytes = 0;
  let isPast = true;
  const lastWithLookups = batch.findLastIndex(({ lookups }) => typeof lookups === 'function' || lookups.length > 0);
  for (const [index, waiting] of batch.entries()) {
    const before = tip;
    try {
      const next = streamRevision(before.revision + 1);
      const decision = waiting.decide(before.state, { next, found: lookups.found, counted: lookups.counted });
      if (!decision.ok) {
        answers.push(afterApply(() => waiting.resolve(decision)));
        continue;
      }
      const own = eventsToAppend(projection.codec, decision.events, {
        after: before.revision,
        source: eventSourceOf(waiting.context),
        metadata: { ...metadataOf(waiting.context), at: latestTime(before.at, timeOf(waiting.context)) },
      });
      const ownBytes = own.reduce((sum, event) => sum + bytesOf(event), 0);
      if (index > 0 && own.length > 0 && bytes + ownBytes > MAX_BATCH_BYTES) {
        return { answers, events, bytes, isPast, after: before, rest: batch.slice(index) };
      }
      bytes += ownBytes;
      if (own.length > 0) isPast &&= waiting.context.isPast === true;
      events.push(...own);
      const after = {
        state: foldEvents(projection.fold, before.state, own),
        revision: streamRevision(before.revision + own.length),
        at: own.at(-1)?.metadata.at ?? before.at,
      };
      // For the commands after it: to project a run costs as much as the rest of the decision.
      if (index < lastWithLookups && own.length > 0) {
        const { id } = waiting;
        const { organizationId } = waiting.context;
        const run = { organizationId, id, before: before.state, after: after.state, events: own };
        lookups.learn(projection.project(run, entityKeys(projection, organizationId, id)).operations);
      }
      tip = after;
      const { state, revision } = after;
      answers.push(answerOf(waiting, { ok: true, state, revision, events: own }));
    } catch (error) {
      answers.push(afterApply(() => waiting.reject(error)));
    }
  }
  return { answers, events, bytes, isPast, after: tip, rest: [] };
}

function answerOf<State, E extends DomainEvent>(
  { context: { onAppended }, resolve }: Waiting<State, E>,
  result: CommandResult<State, E, Rejection>,
): Answer {
  if (onAppended === undefined) return afterApply(() => resolve(result));
  return (applied) => {
    onAppended(applied);
    resolve(result);
  };
}

/**
 * Fails a command that would be accepted unless its caller allows the revision that it is decided on; rejections come
 * first (RFC 9110, 13.2.1). The expected revision of the append guards the check. A repeated command is not decided
 * again, so its own events do not fail it.
 */
export function matching<State, E extends DomainEvent, R extends Rejection>(
  { ifMatch }: CommandContext,
  decide: Decide<State, E, R>,
  revisionOf: (state: State) => StreamRevision | null,
): Decide<State, E, R> {
  if (ifMatch === undefined) return decide;
  return (state, at) => {
    const decision = decide(state, at);
    if (!decision.ok) return decision;
    const revision = revisionOf(state);
    if (revision === null) throw preconditionFailed('There is no ETag that If-Match could name');
    if (!ifMatch.allows(revision)) throw preconditionFailed('The entity has changed since the given ETag');
    return decision;
  };
}

function preconditionFailed(detail: string): Fault {
  return new Fault('precondition_failed', detail);
}

function bytesOf({ type, data, metadata }: StreamEvent): number {
  return EVENT_BYTES + type.length + jsonBytesOf(data) + jsonBytesOf(metadata);
}

/**
 * The namespace of the ids of a command's events. The event store acknowledges events whose ids it already has, even if
 * their data differ: the request would then publish and project events that the log does not contain. So if an earlier
 * request may have appended events of the command, each request uses its own ids, gets a conflict, and finds the command
 * by its id among the events that it missed.
 */
function eventSourceOf({ commandId, idempotencyKey, at }: CommandContext): EntityId {
  return idempotencyKey === undefined ? commandId : derivedId(commandId, at);
}
