import { messageOf } from '#libs/kernel/faults.ts';
import type { ConsumerGroups, Delivery, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { backoffMs, type LifecycleLog, pause } from '#libs/platform/lifecycle/index.ts';
import { TipCache } from '#libs/platform/streams/index.ts';

import { FairSlots, type SlotUse } from './fair-slots.ts';
import { type AnyReactor, GROUP_PREFIX, groupNameOf, reactorNameOf, RetryLater } from './reactor.ts';
import { type AnyStep, concerns, Step, type StepContext, type StepResult } from './step.ts';

export interface ReactorRunnerOptions extends StepContext {
  readonly groups: ConsumerGroups;
  readonly log: LifecycleLog;
  /** Time after which the process that stops closes its clients. Default 10,000. */
  readonly stopTimeoutMs?: number | undefined;
  /** Called for each attempt, with what became of it. */
  readonly onAttempt?: (outcome: AttemptOutcome) => void;
}

/** `waiting`: the process is neither ended nor moved on, or a store was away. */
export type AttemptOutcome = 'handled' | 'given_up' | 'failed' | 'waiting' | 'parked';

export interface ReactorProgress {
  /** Whether this worker is a member of the consumer group. */
  readonly isJoined: boolean;
  /** Events that are being handled. */
  readonly running: number;
  /** Events that this worker holds besides: they wait for a free slot, or for their next attempt. */
  readonly held: number;
  /** Age of the oldest event that this worker holds; 0 without any. */
  readonly lagMs: number;
}

/** An event that this worker has not answered yet. */
interface Held {
  /** The newest one, which alone can be answered. */
  delivery: Delivery;
  readonly step: AnyStep;
  readonly use: SlotUse;
  state: 'ready' | 'running' | 'waiting';
  failures: number;
  pauses: number;
  lastError: string | null;
  /** When its pause is over, on the clock of `performance`. */
  readyAtMs: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Events that one worker holds, those that wait for a slot or their next attempt included. Organizations take turns within
 * these: beyond them, the reactor takes events in the order of the log.
 */
const MAX_HELD = 20_000;
/**
 * For steps that wait for the stores alone: running more of them at a time ends none sooner, and fills the event loop, which
 * other work of the process needs as well.
 */
const CONCURRENCY = 8;
/** Longest time that a worker that stops waits for steps under way. */
const STOP_GRACE_MS = 5_000;

/** Runs one reactor in one worker: a member of its consumer group. See `Reactor` for the guarantees. */
export class ReactorRunner {
  readonly #reactor: AnyReactor;
  readonly #options: ReactorRunnerOptions;
  readonly #held = new Map<string, Held>();
  /** Events that a lost membership took away. They come back with their failures and pauses. */
  readonly #lost = new Map<string, Held>();
  readonly #slots: FairSlots<Held>;
  readonly #leave = new AbortController();
  readonly #giveUp = new AbortController();
  #isJoined = false;
  #isStopping = false;
  #onIdle: (() => void) | undefined;

  constructor(reactor: AnyReactor, options: ReactorRunnerOptions) {
    this.#reactor = reactor;
    this.#options = { tips: new TipCache(), ...options };
    const { concurrency = CONCURRENCY, perOrganization, perResource = Infinity } = reactor.limits ?? {};
    this.#slots = new FairSlots({
      concurrency,
      perOrganization: perOrganization ?? Math.ceil(concurrency / 2),
      perResource,
    });
  }

  get progress(): ReactorProgress {
    const { running } = this.#slots;
    const now = Date.now();
    let oldestMs = now;
    for (const { delivery } of this.#held.values()) oldestMs = Math.min(oldestMs, delivery.event.createdMs);
    return { isJoined: this.#isJoined, running, held: this.#held.size - running, lagMs: now - oldestMs };
  }

  /** Consumes until `signal` aborts; then waits a few seconds for steps under way, and leaves the group. */
  async run(signal: AbortSignal): Promise<void> {
    const stop = (): void => void this.#stop();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const { limits: { stepTimeoutMs = 60_000 } = {}, on: types, from = 'start' } = this.#reactor;
    // A step that ends at the last moment is still to be answered.
    const names = new Set([this.#reactor.name, ...(this.#reactor.formerly ?? [])]);
    const group = {
      name: groupNameOf(this.#reactor),
      types,
      from,
      formerConsumerOf(group: string) {
        const name = group.startsWith(GROUP_PREFIX) ? reactorNameOf(group) : '';
        return names.has(name) ? name : null;
      },
      messageTimeoutMs: 2 * stepTimeoutMs,
    };
    const items = this.#options.groups.consume(group, { bufferSize: MAX_HELD, signal: this.#leave.signal });
    for await (const item of items) {
      this.#isJoined = item.kind !== 'left';
      if (item.kind === 'left') this.#forget();
      if (item.kind === 'delivery' && !this.#isStopping) this.#take(item.delivery);
    }
    this.#isJoined = false;
    for (const { timer } of this.#held.values()) clearTimeout(timer);
    this.#held.clear();
  }

  /** What is not under way may be with another worker by now; what is under way is still worth its outcome. */
  #forget(): void {
    for (const [key, held] of this.#held) {
      if (held.state === 'running') continue;
      clearTimeout(held.timer);
      if (held.state === 'ready') this.#slots.remove(held);
      this.#held.delete(key);
      this.#lost.set(key, held);
    }
    for (const key of this.#lost.keys()) {
      if (this.#lost.size <= MAX_HELD) break;
      this.#lost.delete(key);
    }
  }

  #take(delivery: Delivery): void {
    const { event } = delivery;
    const key = keyOf(event);
    const known = this.#held.get(key);
    // Delivered again because it was held for long: it keeps its place and its attempts.
    if (known !== undefined) {
      known.delivery = delivery;
      return;
    }
    const lost = this.#lost.get(key);
    if (lost !== undefined) {
      this.#lost.delete(key);
      lost.delivery = delivery;
      this.#held.set(key, lost);
      this.#schedule(lost);
      return;
    }
    if (!concerns(this.#reactor, event)) {
      delivery.acknowledge();
      return;
    }
    const step = this.#stepOf(event);
    if ('reason' in step) this.#park(delivery, step.reason);
    else {
      const { use, delayMs } = step;
      const held: Held = {
        delivery,
        step,
        use,
        state: 'ready',
        failures: 0,
        pauses: 0,
        lastError: null,
        readyAtMs: performance.now() + delayMs,
        timer: undefined,
      };
      this.#held.set(key, held);
      if (delayMs > 0) this.#schedule(held);
      else this.#ready(held);
    }
  }

  #stepOf(event: StoredEvent): AnyStep | { readonly reason: string } {
    try {
      return new Step(this.#reactor, this.#options, event);
    } catch (error) {
      return { reason: String(error) };
    }
  }

  #ready(held: Held): void {
    held.state = 'ready';
    this.#slots.add(held);
    this.#startReady();
  }

  #startReady(): void {
    if (this.#isStopping) return;
    for (let held = this.#slots.take(); held !== undefined; held = this.#slots.take()) void this.#attempt(held);
  }

  async #attempt(held: Held): Promise<void> {
    held.state = 'running';
    const { failures, lastError } = held;
    const result = await held.step.attempt({ failures, lastError, signal: this.#giveUp.signal });
    this.#slots.release(held);
    this.#settle(held, result);
    this.#startReady();
    this.#onIdle?.();
  }

  #settle(held: Held, result: StepResult): void {
    const { onAttempt } = this.#options;
    const { delivery } = held;
    if (result.kind === 'again') {
      onAttempt?.(result.isFailure ? 'failed' : 'waiting');
      this.#wait(held, result);
      return;
    }
    this.#held.delete(keyOf(delivery.event));
    if (result.kind === 'park') {
      this.#park(delivery, result.reason);
      return;
    }
    delivery.acknowledge();
    onAttempt?.(result.isGivenUp ? 'given_up' : 'handled');
  }

  #wait(held: Held, { error, isFailure, withinMs }: Extract<StepResult, { kind: 'again' }>): void {
    const { name, limits: { pauseMs } = {} } = this.#reactor;
    const { stream, revision } = held.delivery.event;
    if (isFailure) {
      held.failures += 1;
      held.lastError = messageOf(error);
    }
    if (error !== null) {
      const fields = { err: error, reactor: name, stream, revision, failures: held.failures };
      this.#options.log.warn(fields, 'a reactor handles an event again');
    }
    held.pauses += 1;
    const backoff = backoffMs(held.pauses, { firstMs: pauseMs?.first ?? 500, maxMs: pauseMs?.longest ?? 30_000 });
    const waitMs = error instanceof RetryLater ? Math.max(backoff, error.afterMs) : backoff;
    held.readyAtMs = performance.now() + Math.min(waitMs, withinMs);
    this.#schedule(held);
  }

  /** Makes the event ready once its pause is over. */
  #schedule(held: Held): void {
    held.state = 'waiting';
    held.timer = setTimeout(() => this.#ready(held), Math.max(0, held.readyAtMs - performance.now()));
  }

  #park(delivery: Delivery, reason: string): void {
    const { stream, revision } = delivery.event;
    this.#options.log.error({ reactor: this.#reactor.name, stream, revision, reason }, 'a reactor parked an event');
    delivery.park(reason);
    this.#options.onAttempt?.('parked');
  }

  /** Nothing is begun any more. Once the group is left, the event store hands what is held to other workers. */
  async #stop(): Promise<void> {
    this.#isStopping = true;
    const isIdle = (): boolean => this.#slots.running === 0;
    const over = new AbortController();
    this.#onIdle = () => {
      if (isIdle()) over.abort();
    };
    this.#onIdle();
    const { stopTimeoutMs = 2 * STOP_GRACE_MS } = this.#options;
    // The rest is for leaving the group, before the clients are closed.
    await pause(Math.min(STOP_GRACE_MS, stopTimeoutMs / 2), over.signal);
    this.#giveUp.abort(new Error('the worker stops'));
    this.#leave.abort();
  }
}

/** The ids of events are unique within a stream only. */
function keyOf({ stream, revision }: StoredEvent): string {
  return `${stream}@${revision}`;
}
