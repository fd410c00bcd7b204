import type { BackoffOptions } from './backoff.ts';
import type { Acknowledgement, CommandData, CommandType } from './commands.ts';
import type { Draft } from './drafts.ts';
import { CommandError } from './errors.ts';
import type { Ephemeral } from './ephemerals.ts';
import { EventQueue } from './event-queue.ts';
import type { QueueLimits } from './event-queue.ts';
import type { ChannelEvent } from './events.ts';
import type { Step } from './follower.ts';
import type { Include } from './frames.ts';
import { Link } from './link.ts';
import type { LinkParts, LinkState } from './link.ts';
import { Listeners } from './listeners.ts';

export interface SubscribeOptions {
  /** Sequence of the last event seen, however old; 0: from the beginning. Absent: only what is new. */
  readonly after?: number | undefined;
  /** Default: all three. What is not included comes as an event without `data`, so that no sequence is missing. */
  readonly include?: readonly Include[] | undefined;
  /** Closes the subscription when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** What may wait for a consumer that lags, before nothing is received until it has taken half of it. */
  readonly queue?: QueueLimits | undefined;
  /** Pauses between reconnections. */
  readonly backoff?: BackoffOptions | undefined;
}

export type SubscriptionState =
  | LinkState
  /** For good. `error` is null when it was closed by {@link ChannelSubscription.close}. */
  | { readonly state: 'closed'; readonly error: Error | null };

/** What listeners are told, by the name of what they listen to. */
export interface SubscriptionEvents {
  /** Each event of the channel, once, in order. */
  readonly event: ChannelEvent;
  /** The text of an interaction that is being written; told as it comes, not behind events that wait. */
  readonly draft: Draft;
  /** Typing, tool calls that run; told as it comes. */
  readonly ephemeral: Ephemeral;
  /** All events up to `seq` have been received; after each connection. */
  readonly caughtUp: { readonly seq: number };
  readonly state: SubscriptionState;
}

type CommandArguments<Type extends CommandType> = CommandData[Type] extends undefined
  ? [data?: undefined, id?: string]
  : [data: CommandData[Type], id?: string];

interface Taker {
  readonly resolve: (result: IteratorResult<ChannelEvent, undefined>) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A channel, followed. Connects by itself, and again whenever the connection is lost, and goes on behind the last
 * event. Events are handed to `for await`, or to listeners, or to both; each counts as seen ({@link cursor}) when
 * it is handed over. It may have been handed over and not been worked off when the program dies: keep the cursor
 * together with what you made of the event, and pass it as `after`.
 */
export class ChannelSubscription implements AsyncIterable<ChannelEvent> {
  readonly channelId: string;
  readonly #link: Link;
  readonly #queue: EventQueue;
  readonly #listeners = new Listeners<SubscriptionEvents>();
  readonly #detach: () => void;
  #cursor: number | null;
  #state: SubscriptionState = { state: 'connecting' };
  #iterated = false;
  #taker: Taker | null = null;
  /** What ended the subscription, until a loop is told. */
  #untold: Error | null = null;

  constructor(parts: Omit<LinkParts, 'backoff'>, options: SubscribeOptions = {}) {
    const { after, include = ['ephemeral', 'nested', 'incomplete'], signal, queue, backoff = {} } = options;
    if (after !== undefined && (!Number.isSafeInteger(after) || after < 0)) {
      throw new RangeError(`after is a sequence: a whole number from 0; it is ${String(after)}`);
    }
    this.channelId = parts.channelId;
    this.#cursor = after ?? null;
    this.#queue = new EventQueue(queue);
    this.#link = new Link(
      { ...parts, backoff },
      { after, include },
      {
        onStep: (step, size) => this.#take(step, size),
        onState: (state) => this.#enter(state),
      },
    );
    const onAbort = (): void => this.close();
    signal?.addEventListener('abort', onAbort);
    this.#detach = () => signal?.removeEventListener('abort', onAbort);
    // Listeners that are added right after this are told everything.
    queueMicrotask(() => (signal?.aborted === true ? this.close() : this.#run()));
  }

  /** Sequence of the last event that was handed over; null while there was none and the channel's head is not known. */
  get cursor(): number | null {
    return this.#cursor;
  }
  get state(): SubscriptionState {
    return this.#state;
  }
  /** Texts of the interactions that are being written, by the id of the interaction. */
  get drafts(): ReadonlyMap<string, string> {
    return this.#link.follower.drafts;
  }

  /** @returns takes the listener off again */
  on<Name extends keyof SubscriptionEvents>(
    name: Name,
    listener: (told: SubscriptionEvents[Name]) => void,
  ): () => void {
    if (name === 'event') queueMicrotask(() => this.#handOver());
    return this.#listeners.add(name, listener);
  }

  /**
   * Sends a command, again after every lost connection until it is answered; the server does it once.
   *
   * `id` is a UUID, to repeat a command of an earlier run; absent, it is a new one.
   *
   * @returns resolves when what it wrote is durable
   * @throws CommandError when it is refused, or the subscription ends first
   */
  send<Type extends CommandType>(type: Type, ...[data, id]: CommandArguments<Type>): Promise<Acknowledgement> {
    if (this.#state.state === 'closed') {
      return Promise.reject(new CommandError('not_acknowledged', 'the subscription is closed'));
    }
    const answer = this.#link.outbox.add(type, data, id);
    this.#link.flush();
    return answer;
  }

  /** Ends the subscription, and with it the loop over it. Events that wait are dropped; the cursor stands before them. */
  close(): void {
    this.#queue.clear();
    this.#link.close();
    this.#finish(null);
  }

  /**
   * Events as they come. Leaving the loop closes the subscription.
   *
   * @throws SubscriptionError (from the loop) when the subscription ends by itself; what was received before comes first
   */
  [Symbol.asyncIterator](): AsyncIterator<ChannelEvent, undefined> {
    if (this.#iterated) throw new TypeError('a subscription has one loop over it; listeners may be many');
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
    this.#state = state;
    this.#listeners.tell('state', state);
  }

  #finish(error: Error | null): void {
    if (this.#state.state === 'closed') return;
    this.#detach();
    const why = error === null ? 'the subscription was closed' : error.message;
    this.#link.outbox.abandon(why);
    this.#enter({ state: 'closed', error });
    const taker = this.#taker;
    this.#taker = null;
    if (taker === null) this.#untold = error;
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
        return this.#listeners.tell('draft', step.draft);
      case 'ephemeral':
        return this.#listeners.tell('ephemeral', step.ephemeral);
      case 'greeted':
        // Of one that wants only what is new: this is where it begins.
        this.#cursor ??= this.#link.follower.received;
        return;
      case 'caught up':
        return this.#listeners.tell('caughtUp', { seq: step.seq });
      default:
    }
  }

  /** Gives what waits to whoever takes it: to a loop one at a time, when it asks; else to listeners, all. */
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
    this.#listeners.tell('event', event);
    if (this.#queue.hasRoom) this.#link.receiveAgain();
    return event;
  }

  #next(): Promise<IteratorResult<ChannelEvent, undefined>> {
    const event = this.#shift();
    if (event !== undefined) return Promise.resolve({ done: false, value: event });
    if (this.#state.state === 'closed') {
      const error = this.#untold;
      // Told once: the loop is over after it, as after every iterator that has thrown.
      this.#untold = null;
      return error === null ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
    }
    if (this.#taker !== null) return Promise.reject(new TypeError('the event before it is still awaited'));
    return new Promise((resolve, reject) => (this.#taker = { resolve, reject }));
  }
}
