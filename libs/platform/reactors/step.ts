import { systemClock } from '#libs/kernel/clock.ts';
import { foldEvents } from '#libs/kernel/decider.ts';
import {
  type DomainEvent,
  type EventMetadata,
  NO_EVENTS,
  type StreamEvent,
  streamRevision,
} from '#libs/kernel/event.ts';
import { Fault, StreamGone } from '#libs/kernel/faults.ts';
import { derivedId, type EntityId, newId } from '#libs/kernel/ids.ts';
import { type CommandContext, metadataOf } from '#libs/platform/commands/index.ts';
import type { EventStore, StoreClock, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { unlessAborted, withTimeLimit } from '#libs/platform/lifecycle/index.ts';
import { TipCache } from '#libs/platform/streams/index.ts';

import type { SlotUse } from './fair-slots.ts';
import { ProcessStream, type ProcessTip, type Recorded, stateAfter } from './process-stream.ts';
import type { AnyReactor, EndedProcess, GivenUp, Process, Reactor } from './reactor.ts';

/** What became of one attempt at one event. */
export type StepResult =
  /** The event can be acknowledged. */
  | { readonly kind: 'done'; readonly isGivenUp: boolean }
  /** The event is to be handled again, at the latest after `withinMs`: then a cap is reached. */
  | { readonly kind: 'again'; readonly withinMs: number; readonly error: unknown; readonly isFailure: boolean }
  | { readonly kind: 'park'; readonly reason: string };

export interface StepAttempt {
  /** Attempts that have failed in this worker. */
  readonly failures: number;
  readonly lastError: string | null;
  /** Gives up the attempt. */
  readonly signal: AbortSignal;
}

export interface StepContext {
  readonly store: EventStore;
  readonly clock: StoreClock;
  /** Processes as their steps have last seen them. Default: an own cache. */
  readonly tips?: TipCache | undefined;
  /** Called after events were appended to a process, to bring its read model up to date. Must not throw. */
  readonly onRecorded?: ((recorded: RecordedStep) => void) | undefined;
}

export interface RecordedStep {
  readonly process: AnyReactor['process'];
  readonly organizationId: EntityId;
  readonly id: EntityId;
  /** What was appended; null where another worker may have appended it before, with other contents. */
  readonly run: { readonly before: unknown; readonly after: unknown; readonly events: readonly StreamEvent[] } | null;
}

/** The step of any reactor. */
export type AnyStep = Pick<Step<unknown, DomainEvent, DomainEvent>, 'use' | 'delayMs' | 'attempt'>;

/** Whether the event may need a step of the reactor. Without `processOf`, its types may also occur in other streams. */
export function concerns({ processOf, process, isIrrelevant }: AnyReactor, event: StoredEvent): boolean {
  const isOfProcess = processOf !== undefined || event.stream.startsWith(`${process.category}-`);
  return isOfProcess && isIrrelevant?.(event) !== true;
}

/** Namespace of the ids of steps. Part of the storage format: never change it. */
const STEPS = '5c0f5fd8-6a3b-4f0e-9a55-6a8c3b9f2d71';

/** What one event of a reactor leads to, from the load of its process to the append of the outcome. */
export class Step<State, E extends DomainEvent, Trigger extends DomainEvent> {
  readonly processId: EntityId;
  readonly #reactor: Reactor<State, E, Trigger>;
  readonly #context: StepContext;
  readonly #stored: StoredEvent;
  readonly #event: StreamEvent<Trigger>;
  readonly #stream: ProcessStream<State, E>;
  readonly #tips: TipCache;
  readonly #id: EntityId;
  #firstTriedMs: number | undefined;

  /**
   * @param stored an event that concerns the reactor
   * @throws CorruptEventError, or what `processOf` throws: the event can never be handled
   */
  constructor(reactor: Reactor<State, E, Trigger>, context: StepContext, stored: StoredEvent) {
    const { process, name } = reactor;
    const event = (reactor.triggers ?? process.codec).decode(stored) as StreamEvent<Trigger> | null;
    if (event === null) throw new TypeError(`the reactor ${name} has no schema of ${stored.type}`);
    this.processId = reactor.processOf?.(event, stored.stream) ?? stored.stream.slice(`${process.category}-`.length);
    this.#reactor = reactor;
    this.#context = context;
    this.#stored = stored;
    this.#event = event;
    this.#tips = context.tips ?? new TipCache();
    this.#stream = new ProcessStream(process, context, { id: this.processId, tips: this.#tips });
    this.#id = this.#derivedId(`${stored.stream}@${stored.revision}`);
  }

  get use(): SlotUse {
    const { laneOf, resourceOf } = this.#reactor;
    return {
      lane: laneOf?.(this.#event) ?? '',
      organizationId: this.#event.metadata.organizationId,
      resource: resourceOf?.(this.#event) ?? null,
      processId: this.processId,
    };
  }

  /** How long the first attempt waits. */
  get delayMs(): number {
    return this.#reactor.delayMs?.(this.#event) ?? 0;
  }

  /** Never rejects. */
  async attempt(attempt: StepAttempt): Promise<StepResult> {
    if (this.#reactor.hasEnded?.(this.#event, this.processId) === true) return DONE;
    const { limits: { stepTimeoutMs = 60_000, maxAttempts = 8, deadlineMs = 900_000 } = {} } = this.#reactor;
    // 1. Fold the process from its own stream.
    const tip = await this.#load(attempt);
    if ('kind' in tip) return tip;

    // 2. Nothing is left to do for a process that has ended, nor for an event that a later one has replaced.
    if (this.#isDone(tip)) return DONE;

    // 3. A cap ends the process.
    const remainingMs = deadlineMs - this.#ageMs(tip);
    const cap = remainingMs <= 0 ? 'deadline' : attempt.failures >= maxAttempts ? 'attempts' : null;
    if (cap !== null) return this.#giveUp(tip, cap, attempt);

    // 4. What follows from the event is recorded: the process waits for something else.
    if (tip.commandIds.has(this.#id)) return again(attempt, remainingMs, null);

    // 5. Do what follows from the event, and append what came of it at the revision that was seen.
    try {
      const ended = await withTimeLimit(stepTimeoutMs, attempt.signal, (signal) =>
        this.#handle(tip, { ...attempt, signal }, stepTimeoutMs),
      );
      // Without an outcome, nothing is left to do for a process that does not exist.
      const isOver = ended === null ? tip.revision === NO_EVENTS || this.#hasMovedOn(tip) : this.#isDone(ended);
      return isOver ? DONE : again(attempt, remainingMs, null);
    } catch (error) {
      return again(attempt, remainingMs, error);
    }
  }

  async #load(attempt: StepAttempt): Promise<ProcessTip<State> | StepResult> {
    let tip: ProcessTip<State>;
    try {
      tip = this.#ownTip(attempt) ?? (await this.#stream.load());
    } catch (error) {
      // What was deleted does not come back.
      const passes = error instanceof Fault && !(error instanceof StreamGone);
      return passes ? again(attempt, Infinity, error) : { kind: 'park', reason: String(error) };
    }
    if (tip.organizationId === null || tip.organizationId === this.#event.metadata.organizationId) return tip;
    return { kind: 'park', reason: `${this.#stream.name} belongs to another organization than the event` };
  }

  /**
   * The process as this worker has seen it less than a second ago, after the event: nearly always right after it has appended
   * the event. An event that was appended since makes the append of the outcome fail, and work that takes long looks for it
   * (`unlessOvertaken`).
   */
  #ownTip({ failures }: StepAttempt): ProcessTip<State> | null {
    const isOfProcess = this.#stored.stream === this.#stream.name;
    const isFirst = failures === 0 && this.#firstTriedMs === undefined;
    const tip = isOfProcess && isFirst ? this.#stream.known : null;
    const isNew = tip !== null && tip.revision >= this.#stored.revision;
    return isNew && performance.now() - tip.seenAtMs < SEEN_MS ? tip : null;
  }

  #isDone(tip: ProcessTip<State>): boolean {
    return this.#reactor.isEnded(tip.state) || this.#hasMovedOn(tip);
  }

  /**
   * The age of the process, by the clock of the event store. While that is not known, or the process has not started, the
   * time since the first attempt at the event: this process's clock may be wrong by more than the deadline.
   */
  #ageMs({ state, createdMs }: ProcessTip<State>): number {
    this.#firstTriedMs ??= performance.now();
    const { nowMs } = this.#context.clock;
    const { startRevision = () => FIRST } = this.#reactor;
    const startedAtMs = createdMs.get(startRevision(state) ?? NO_EVENTS);
    return startedAtMs === undefined || nowMs === null ? performance.now() - this.#firstTriedMs : nowMs - startedAtMs;
  }

  /** @returns the process after the outcome, or null without one */
  async #handle(
    tip: ProcessTip<State>,
    { failures, signal }: StepAttempt,
    limitMs: number,
  ): Promise<ProcessTip<State> | null> {
    const startedAt = performance.now();
    let current = tip;
    /** Also for a process that was paused, whose timers have not run yet. */
    const refuseLate = (): void => {
      signal.throwIfAborted();
      if (performance.now() - startedAt > limitMs) throw new Error(`the step took longer than ${limitMs} ms`);
    };
    const process: Process<State, E> = {
      ...this.#endedProcess(),
      state: tip.state,
      attempt: failures + 1,
      signal,
      idempotencyKey: (effect) => this.#effectId(effect),
      recordIntent: async (...events) => {
        refuseLate();
        const commandId = derivedId(this.#id, 'intent');
        // Ids of this attempt alone: for another one's, the event store would acknowledge an intent that is not ours.
        const source = derivedId(commandId, newId());
        const recorded = await this.#stream.append(current, events, { source, ...this.#metadata(commandId) });
        if (recorded === null) throw new Superseded();
        this.#recorded(current, recorded);
        const state = foldEvents(this.#reactor.process.fold, current.state, recorded.events);
        const revision = streamRevision(current.revision + recorded.events.length);
        current = recorded.tip ?? { ...current, state, revision };
        return state;
      },
    };
    const handled = Promise.resolve().then(() => this.#reactor.handle(this.#event, process));
    const events = await unlessAborted(handled, signal);
    if (events.length === 0) return current === tip ? null : this.#stream.load();
    refuseLate();
    return this.#record(current, events, this.#id);
  }

  async #giveUp(tip: ProcessTip<State>, reason: GivenUp['reason'], attempt: StepAttempt): Promise<StepResult> {
    const why = { reason, lastError: attempt.lastError };
    try {
      const events = await this.#reactor.giveUp(tip.state, why, this.#event, this.#endedProcess());
      const ended = await this.#record(tip, events, derivedId(this.#id, 'given up'));
      // Nothing needs an end where there is no process.
      if (this.#reactor.isEnded(ended.state) || ended.revision === NO_EVENTS) return { kind: 'done', isGivenUp: true };
      return { kind: 'park', reason: `${this.#stream.name} was given up (${reason}) and has not ended` };
    } catch (error) {
      if (error instanceof Fault || error instanceof Superseded) return again(attempt, Infinity, error);
      return { kind: 'park', reason: `${this.#stream.name} cannot be given up (${reason}): ${String(error)}` };
    }
  }

  /**
   * Appends what a step came to. Another worker may have recorded the same step, with the same ids, and the event store
   * acknowledges that as well: then what counts is what is read back.
   */
  async #record(tip: ProcessTip<State>, events: readonly E[], id: EntityId): Promise<ProcessTip<State>> {
    if (events.length === 0) return tip;
    const recorded = await this.#stream.append(tip, events, { source: id, ...this.#metadata(id) });
    if (recorded === null) throw new Superseded();
    this.#recorded(tip, recorded);
    return recorded.tip ?? this.#stream.load();
  }

  #recorded({ state: before }: ProcessTip<State>, { events, tip }: Recorded<State, E>): void {
    const { process } = this.#reactor;
    const run = tip && { before, after: tip.state, events };
    this.#context.onRecorded?.({
      process,
      organizationId: this.#event.metadata.organizationId,
      id: this.processId,
      run,
    });
  }

  /** Whether the process holds a later event that the reactor handles. */
  #hasMovedOn({ newest }: ProcessTip<State>): boolean {
    const own = this.#stored.stream === this.#stream.name ? this.#stored.revision : NO_EVENTS;
    return this.#reactor.on.some((type) => (newest.get(type) ?? NO_EVENTS) > own);
  }

  #derivedId(step: string): EntityId {
    return derivedId(STEPS, `${this.#stream.name} ${this.#reactor.name} ${step}`);
  }

  #effectId(effect = ''): EntityId {
    return derivedId(this.#id, `effect ${effect}`);
  }

  #endedProcess(): EndedProcess {
    return {
      id: this.processId,
      organizationId: this.#event.metadata.organizationId,
      commandContext: (effect) => this.#commandContext(this.#effectId(effect)),
      stateAfterEvent: (type) => stateAfter(this.#stored, type, this.#context, this.#tips),
    };
  }

  #metadata(commandId: EntityId): EventMetadata {
    const context = this.#commandContext(commandId);
    return { ...metadataOf(context), at: this.#context.clock.corrected(context.at) };
  }

  #commandContext(commandId: EntityId): CommandContext {
    const { organizationId, $correlationId: correlationId, traceparent } = this.#event.metadata;
    return {
      commandId,
      organizationId,
      actor: { type: 'system', id: `reactor:${this.#reactor.name}` },
      at: systemClock.now(),
      correlationId,
      causationId: this.#stored.id,
      traceparent,
    };
  }
}

const FIRST = streamRevision(0);
/** How old what a worker knows of a process may be when it begins a step. */
const SEEN_MS = 1_000;

const DONE: StepResult = { kind: 'done', isGivenUp: false };

function again({ signal }: StepAttempt, withinMs: number, error: unknown): StepResult {
  const isFailure = error !== null && !(error instanceof Fault) && !(error instanceof Superseded);
  return { kind: 'again', withinMs, error, isFailure: isFailure && !signal.aborted };
}

/** The process has got other events since it was folded; not a failure. */
class Superseded extends Error {
  override readonly name = 'Superseded';
}
