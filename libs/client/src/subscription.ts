import type { BackoffOptions } from './backoff.ts';
import type { Acknowledgement, CommandData, CommandType, TypingCommand } from './commands.ts';
import { CommandError } from './errors.ts';
import { EventQueue, type QueueLimits } from './event-queue.ts';
import type { ChannelEvent, ReadMarker } from './events.ts';
import type { Draft, Ephemeral, Step } from './follower.ts';
import type { Include, Principal } from './frames.ts';
import { Link, type LinkParts, type LinkState } from './link.ts';

export interface SubscribeOptions {
  /** Sequence of the last event seen; 0: from the beginning. Absent: new events only. */
  readonly after?: number | undefined;
  /** Default: all three. Events that are not included have no `data`, so sequences stay contiguous. */
  readonly include?: readonly Include[] | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Limits of the queue for a slow consumer. When it is full, no events are received until half of it is taken; commands,
   * drafts and ephemeral values still pass.
   */
  readonly queue?: QueueLimits | undefined;
  /** A command without an answer after so many milliseconds is rejected with the code `timeout`. Default: 60,000. */
  readonly answerWithinMs?: number | undefined;
  /** Pauses between reconnections. */
  readonly backoff?: BackoffOptions | undefined;
}

export type SubscriptionState =
  | LinkState
  /** Final. `error` is null after {@link ChannelSubscription.close}. */
  | { readonly state: 'closed'; readonly error: Error | null };

/** Values of listeners, by the name of the event. */
export interface SubscriptionEvents {
  /** Each event of the channel, once, in order. */
  readonly event: ChannelEvent;
  /** The text of an interaction that is being written; emitted at once, also while events wait in the queue. */
  readonly draft: Draft;
  /** Typing, running tool calls; emitted at once. */
  readonly ephemeral: Ephemeral;
  /** The user of the subscription has read further, on any of its devices; emitted at once. */
  readonly readMarker: ReadMarker;
  /** After each connection: all events up to `seq` have been received. */
  readonly caughtUp: { readonly seq: number };
  readonly state: SubscriptionState;
}

export type CommandArguments<Type extends CommandType> = undefined extends CommandData[Type]
  ? [data?: CommandData[Type], id?: string]
  : [data: CommandData[Type], id?: string];

interface Taker {
  readonly resolve: (result: IteratorResult<ChannelEvent, undefined>) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A subscription to a channel. It connects by itself, reconnects after every lost connection, and resumes after the last
 * event. Events are delivered to `for await`, to listeners, or to both; {@link cursor} is the last delivered event. A
 * program may crash between delivery and processing: store the cursor together with the result of the event, and pass
 * it as `after`.
 */
export class ChannelSubscription implements AsyncIterable<ChannelEvent> {
  readonly channelId: string;
  readonly #link: Link;
  readonly #queue: EventQueue;
  readonly #listeners = new Listeners<SubscriptionEvents>();
  readonly #detach: () => void;
  #cursor: number | null;
  #state: SubscriptionState = { state: 'connecting' };
  #principal: Principal | null = null;
  #iterated = false;
  #taker: Taker | null = null;
  /** The error that ended the subscription, until the loop has thrown it. */
  #unthrown: Error | null = null;

  constructor(parts: Omit<LinkParts, 'backoff'>, options: SubscribeOptions = {}) {
    const {
      after,
      include = ['ephemeral', 'nested', 'incomplete'],
      signal,
      queue,
      answerWithinMs,
      backoff = {},
    } = options;
    if (after !== undefined && (!Number.isSafeInteger(after) || after < 0)) {
      throw new RangeError(`after is a sequence: a whole number from 0; it is ${String(after)}`);
    }
    this.channelId = parts.channelId;
    this.#cursor = after ?? null;
    this.#queue = new EventQueue(queue);
    this.#link = new Link(
      { ...parts, backoff },
      { after, include, answerWithinMs },
      {
        wantsValues: () => (['draft', 'ephemeral', 'readMarker'] as const).some((name) => this.#listeners.has(name)),
        onStep: (step, size) => this.#take(step, size),
        onState: (state) => this.#enter(state),
      },
    );
    // A signal of its own: Node warns of a leak where one signal has more than ten listeners.
    const aborting = signal && AbortSignal.any([signal]);
    const onAbort = (): void => this.close();
    const onOnline = (): void => this.#link.check();
    aborting?.addEventListener('abort', onAbort);
    const { addEventListener: listen, removeEventListener: unlisten } = globalThis as Partial<EventTarget>;
    // In browsers.
    listen?.call(globalThis, 'online', onOnline);
    this.#detach = () => {
      aborting?.removeEventListener('abort', onAbort);
      unlisten?.call(globalThis, 'online', onOnline);
    };
    // Starts later, so that listeners added right after this receive everything.
    queueMicrotask(() => (signal?.aborted === true ? this.close() : this.#run()));
  }

  /** Sequence of the last delivered event; null before the first one if the head of the channel is not known yet. */
  get cursor(): number | null {
    return this.#cursor;
  }
  get state(): SubscriptionState {
    return this.#state;
  }
  /** The user or service that is connected; null before the first connection. */
  get principal(): Principal | null {
    return this.#principal;
  }
  /** Texts of the interactions that are being written, by the id of the interaction. */
  get drafts(): ReadonlyMap<string, string> {
    return this.#link.follower.drafts;
  }

  /** @returns removes the listener */
  on<Name extends keyof SubscriptionEvents>(
    name: Name,
    listener: (value: SubscriptionEvents[Name]) => void,
  ): () => void {
    if (name === 'event') queueMicrotask(() => this.#handOver());
    const remove = this.#listeners.add(name, listener);
    // Values may now be wanted although the consumer of events lags.
    this.#link.flush();
    return remove;
  }

  /**
   * Sends a command, again after every lost connection until it is answered; the server runs it once. It does not wait
   * for events to be taken.
   *
   * A `typing` signal that repeats the last signal, or cannot be sent at once, is dropped: its promise resolves at once.
   *
   * `id` is a UUID, to repeat a command of an earlier run. Default: a new one.
   *
   * @returns resolves when the events of the command are durable
   * @throws CommandError if it is refused, not answered in time, or the subscription ends first
   */
  send<Type extends CommandType>(type: Type, ...[data, id]: CommandArguments<Type>): Promise<Acknowledgement> {
    if (this.#state.state === 'closed') {
      return Promise.reject(new CommandError('not_acknowledged', 'the subscription is closed'));
    }
    if (type === 'typing' && !this.#link.admitsTyping(data as TypingCommand | undefined)) {
      return Promise.resolve({ id: id ?? '', seq: null });
    }
    const answer = this.#link.outbox.add(type, data, id);
    this.#link.flush();
    return answer;
  }

  /** Connects anew, without a pause: for a program that knows of a change of the network before the client does. */
  reconnect(): void {
    this.#link.reconnect();
  }

  /** Ends the subscription and its loop. Drops the events in the queue, which are after the cursor. */
  close(): void {
    this.#queue.clear();
    this.#link.close();
    this.#finish(null);
  }

  /**
   * The events. Leaving the loop closes the subscription.
   *
   * @throws SubscriptionError (from the loop) if the subscription ends by itself, after the last received event
   */
  [Symbol.asyncIterator](): AsyncIterator<ChannelEvent, undefined> {
    if (this.#iterated) throw new TypeError('a subscription has only one loop; use listeners for more consumers');
    this.#iterated = true;
    return {
      next: () => this.#next(),
      return: async () => {
        this.close();
        return { done: true, value: undefined };
      },
    };
  }

  #run(): void {
    if (this.#state.state === 'closed') return;
    this.#link.run().then(
      () => this.#finish(null),
      (error: unknown) => this.#finish(error instanceof Error ? error : new Error(String(error))),
    );
  }

  #enter(state: SubscriptionState): void {
    if (this.#state.state === 'closed') return;
    if (state.state === 'paused' && this.#state.state === 'paused') return;
    this.#state = state;
    this.#listeners.emit('state', state);
  }

  #finish(error: Error | null): void {
    if (this.#state.state === 'closed') return;
    this.#detach();
    const why = error === null ? 'the subscription was closed' : error.message;
    this.#link.outbox.abandon(why, { isClosed: error === null });
    this.#enter({ state: 'closed', error });
    const taker = this.#taker;
    this.#taker = null;
    if (taker === null) this.#unthrown = error;
    else if (error === null) taker.resolve({ done: true, value: undefined });
    else taker.reject(error);
  }

  #take(step: Step, size: number): void {
    switch (step.do) {
      case 'event':
        this.#queue.push(step.event, size);
        this.#handOver();
        if (this.#queue.full) this.#link.holdBack();
        return;
      case 'draft':
        return this.#listeners.emit('draft', step.draft);
      case 'ephemeral':
        // Only the server writes this key, with the form of REST.
        if (step.ephemeral.key.startsWith('read_marker:')) {
          this.#listeners.emit('readMarker', step.ephemeral.data as ReadMarker);
        }
        return this.#listeners.emit('ephemeral', step.ephemeral);
      case 'greeted':
        // The start of a subscription to new events only.
        this.#cursor ??= this.#link.follower.received;
        this.#principal = step.hello.principal;
        return;
      case 'caught up':
        return this.#listeners.emit('caughtUp', { seq: step.seq });
      default:
    }
  }

  /** Delivers events of the queue: one to a waiting loop; without a loop, all to the listeners. */
  #handOver(): void {
    if (this.#iterated) {
      const taker = this.#taker;
      const event = taker === null ? undefined : this.#shift();
      if (taker === null || event === undefined) return;
      this.#taker = null;
      taker.resolve({ done: false, value: event });
    } else if (this.#listeners.has('event')) {
      while (this.#shift() !== undefined);
    }
  }

  #shift(): ChannelEvent | undefined {
    const event = this.#queue.shift();
    if (event === undefined) return undefined;
    this.#cursor = event.seq;
    this.#listeners.emit('event', event);
    if (this.#queue.hasRoom) this.#link.receiveAgain();
    return event;
  }

  #next(): Promise<IteratorResult<ChannelEvent, undefined>> {
    const event = this.#shift();
    if (event !== undefined) return Promise.resolve({ done: false, value: event });
    if (this.#state.state === 'closed') {
      const error = this.#unthrown;
      // Thrown once: an iterator that has thrown is done.
      this.#unthrown = null;
      return error === null ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
    }
    if (this.#taker !== null) return Promise.reject(new TypeError('the previous event is still awaited'));
    return new Promise((resolve, reject) => (this.#taker = { resolve, reject }));
  }
}

class Listeners<Events extends object> {
  readonly #functions = new Map<keyof Events, Set<(value: never) => void>>();

  /** @returns removes the listener */
  add<Name extends keyof Events>(name: Name, listener: (value: Events[Name]) => void): () => void {
    const functions = this.#functions.get(name) ?? new Set();
    this.#functions.set(name, functions);
    functions.add(listener);
    return () => void functions.delete(listener);
  }

  has(name: keyof Events): boolean {
    return (this.#functions.get(name)?.size ?? 0) > 0;
  }

  /** An error of a listener is reported as uncaught and does not affect the other listeners. */
  emit<Name extends keyof Events>(name: Name, value: Events[Name]): void {
    for (const listener of this.#functions.get(name) ?? []) {
      try {
        // `add` accepts only listeners of the type of this name.
        (listener as (value: Events[Name]) => void)(value);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
