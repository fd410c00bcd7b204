import { MAX_PAUSE_MS, pause, pauseMs, type BackoffOptions } from './backoff.ts';
import { type Acknowledgement, type CommandData, type CommandType, randomUuid } from './commands.ts';
import { ApiError, CommandError, refusedAccess, SubscriptionError } from './errors.ts';
import type { Channel, Interaction } from './events.ts';
import type { Principal } from './frames.ts';
import type { ChannelSubscription, CommandArguments, SubscribeOptions, SubscriptionState } from './subscription.ts';
import { type Page, Timeline } from './timeline.ts';

export interface OpenOptions {
  /** Interactions on the first page, and on each older one: 1 to 100. Default: 50. */
  readonly size?: number | undefined;
  /** Pauses between requests that failed, and between reconnections. */
  readonly backoff?: BackoffOptions | undefined;
}

/** A message that was sent and has not come back as an event of the channel yet. */
export type PendingMessage = CommandData['interaction.post'] & { readonly span_id: string };

/** What a channel shows, at one moment. Never changes; each change makes another one. */
export interface ChannelSnapshot {
  readonly state: SubscriptionState['state'];
  /** Why the view is `closed`: a {@link SubscriptionError}, or an {@link ApiError}; null after {@link ChannelView.close}. */
  readonly error: Error | null;
  /** Null until the first page has come. */
  readonly channel: Channel | null;
  /** Id of the reading user or service; null until the first connection. */
  readonly me: string | null;
  /** Oldest first, with incomplete and nested ones. `reactions` have `reactors`. */
  readonly interactions: readonly Interaction[];
  /** Texts of the incomplete interactions that are being written, by their ids. */
  readonly drafts: ReadonlyMap<string, string>;
  /** Values that are not stored, such as `typing:<user>`, by their keys, until they expire. */
  readonly values: ReadonlyMap<string, unknown>;
  readonly pending: readonly PendingMessage[];
  readonly hasOlder: boolean;
}

export interface ViewParts {
  /** The newest page, or the one below a sequence. Rejects with an ApiError, or the error of the network. */
  readonly page: (size: number, before: number | null, signal?: AbortSignal) => Promise<Page>;
  /** The channel, and the sequence of the newest event of its own that it reflects. */
  readonly channel: (signal: AbortSignal) => Promise<readonly [Channel, number]>;
  readonly subscribe: (options: SubscribeOptions) => ChannelSubscription;
}

/**
 * A channel as a page shows it: its newest interactions, live from then on, and older ones on demand. It is connected
 * while it has listeners; without any it keeps its state, and the next listener resumes from there. `subscribe` and
 * `getSnapshot` are what React's `useSyncExternalStore` takes.
 */
export class ChannelView {
  readonly #parts: ViewParts;
  readonly #size: number;
  readonly #backoff: BackoffOptions;
  readonly #listeners = new Set<() => void>();
  readonly #pending = new Map<string, { readonly message: PendingMessage; readonly shownAt: number | null }>();
  readonly #values = new Map<string, { readonly data: unknown; readonly timer: ReturnType<typeof setTimeout> }>();
  #timeline: Timeline | null = null;
  #subscription: ChannelSubscription | null = null;
  /** Ends the requests of {@link #connect}; null while there is no connection. */
  #connecting: AbortController | null = null;
  #state: SubscriptionState = { state: 'connecting' };
  #me: Principal | null = null;
  #older: Promise<void> | null = null;
  /** Commands without an answer. */
  #sending = 0;
  #wake: (() => void)[] = [];
  #snapshot: ChannelSnapshot | null = null;
  /** Part of the snapshot that stays the same object while texts are written. */
  #interactions: readonly Interaction[] | null = null;

  constructor(parts: ViewParts, { size = 50, backoff = {} }: OpenOptions = {}) {
    this.#parts = parts;
    this.#size = size;
    this.#backoff = backoff;
  }

  /** The same object until something changes. */
  readonly getSnapshot = (): ChannelSnapshot => (this.#snapshot ??= this.#shown());

  /**
   * Calls the listener after each change. The first listener connects the view.
   *
   * @returns removes the listener
   */
  readonly subscribe = (listener: () => void): (() => void) => {
    // The same function may listen twice.
    const own = (): void => listener();
    this.#listeners.add(own);
    this.#start();
    return () => {
      this.#listeners.delete(own);
      // A component that is mounted again at once, as in React's strict mode, keeps the connection.
      setTimeout(() => this.#rest());
    };
  };

  /**
   * Sends a command, as a subscription does. A message is `pending` until the channel shows it. It is sent even if the last
   * listener leaves before the answer.
   *
   * @returns resolves when the events of the command are durable
   * @throws CommandError if it is refused, not answered in time, or the view ends first
   */
  async send<Type extends CommandType>(type: Type, ...[data, id]: CommandArguments<Type>): Promise<Acknowledgement> {
    if (type === 'typing' && this.#subscription === null) return { id: '', seq: null };
    const message = type === 'interaction.post' ? withSpan(data as CommandData['interaction.post'], id) : null;
    if (message !== null) this.#setPending(message, null);
    this.#sending += 1;
    try {
      const subscription = await this.#subscribed();
      const answer = await subscription.send(type, ...([message ?? data, id] as CommandArguments<Type>));
      // Unless its event came first.
      if (message !== null && this.#pending.has(message.span_id)) this.#setPending(message, answer.seq ?? 0);
      return answer;
    } catch (error) {
      if (message !== null && this.#pending.delete(message.span_id)) this.#changed();
      throw error;
    } finally {
      this.#sending -= 1;
      this.#rest();
    }
  }

  /**
   * Loads the page before the oldest loaded interaction; does nothing if there is none. Calls at the same time load one
   * page.
   *
   * @throws ApiError if it is refused, or the error of the network
   */
  older(): Promise<void> {
    return (this.#older ??= this.#loadOlder().finally(() => (this.#older = null)));
  }

  /** Ends the view for good, with the commands that have no answer. */
  close(): void {
    this.#finish(null);
  }

  #shown(): ChannelSnapshot {
    const timeline = this.#timeline;
    this.#interactions ??= timeline?.interactions() ?? [];
    return {
      state: this.#state.state,
      error: this.#state.state === 'closed' ? this.#state.error : null,
      channel: timeline?.channel ?? null,
      me: this.#me?.id ?? null,
      interactions: this.#interactions,
      drafts: new Map(this.#subscription?.drafts),
      values: new Map([...this.#values].map(([key, { data }]) => [key, data])),
      pending: [...this.#pending.values()].map(({ message }) => message),
      hasOlder: timeline !== null && timeline.olderBefore !== null,
    };
  }

  #changed(): void {
    this.#snapshot = null;
    for (const listener of this.#listeners) listener();
  }

  /** A replay is shown when it has ended: until then, the channel is in a state of the past. */
  #received(): void {
    if (this.#state.state !== 'replaying') this.#changed();
  }

  #enter(state: SubscriptionState): void {
    this.#state = state;
    this.#changed();
    for (const wake of this.#wake.splice(0)) wake();
  }

  #start(): void {
    if (this.#connecting !== null || this.#state.state === 'closed') return;
    const connecting = new AbortController();
    this.#connecting = connecting;
    this.#connect(connecting.signal).catch((error: unknown) => {
      if (!connecting.signal.aborted) this.#finish(error instanceof Error ? error : new Error(String(error)));
    });
  }

  /** Disconnects while nothing needs the connection. */
  #rest(): void {
    if (this.#listeners.size > 0 || this.#sending > 0 || this.#state.state === 'closed') return;
    this.#disconnect();
    this.#state = { state: 'connecting' };
    this.#snapshot = null;
  }

  #disconnect(): void {
    this.#connecting?.abort();
    this.#connecting = null;
    const subscription = this.#subscription;
    this.#subscription = null;
    subscription?.close();
    for (const { timer } of this.#values.values()) clearTimeout(timer);
    this.#values.clear();
  }

  #finish(error: Error | null): void {
    if (this.#state.state === 'closed') return;
    this.#disconnect();
    this.#enter({ state: 'closed', error });
  }

  async #connect(signal: AbortSignal): Promise<void> {
    if (this.#timeline === null) await this.#load(signal);
    if (signal.aborted || this.#timeline === null) return;
    const timeline = this.#timeline;
    const subscription = this.#parts.subscribe({ after: timeline.position, backoff: this.#backoff });
    this.#subscription = subscription;
    for (const wake of this.#wake.splice(0)) wake();
    subscription.on('state', (state) => {
      if (this.#subscription !== subscription) return;
      this.#me = subscription.principal ?? this.#me;
      if (state.state !== 'closed') this.#enter(state);
      else if (state.error instanceof SubscriptionError && state.error.code === 'events_gone') this.#reload();
      else this.#finish(state.error);
    });
    subscription.on('event', (event) => {
      timeline.apply(event, this.#userId);
      this.#interactions = null;
      if (event.type === 'interaction.posted') this.#pending.delete(event.data?.span_id ?? '');
      // A message that was deleted at once comes without its span.
      for (const [span, { shownAt }] of this.#pending) {
        if (shownAt !== null && shownAt <= event.seq) this.#pending.delete(span);
      }
      this.#received();
    });
    subscription.on('draft', () => this.#received());
    subscription.on('ephemeral', ({ key, data, ttlMs }) => {
      clearTimeout(this.#values.get(key)?.timer);
      this.#values.delete(key);
      const timer = setTimeout(() => this.#values.delete(key) && this.#changed(), ttlMs);
      if (data === null || ttlMs === 0) clearTimeout(timer);
      else this.#values.set(key, { data, timer });
      this.#received();
    });
  }

  get #userId(): string | null {
    return this.#me?.type === 'user' ? this.#me.id : null;
  }

  /** The events after the position were deleted by the operator: begins anew with the newest page. */
  #reload(): void {
    this.#disconnect();
    this.#timeline = null;
    this.#interactions = null;
    this.#start();
  }

  /** Retries until the first page has come. @throws ApiError or SubscriptionError if that cannot succeed */
  async #load(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      try {
        const page = await this.#parts.page(this.#size, null, signal);
        // Afterwards, so that it reflects all events up to those of the page.
        const [channel, reflects] = await this.#parts.channel(signal);
        if (signal.aborted) return;
        this.#timeline = new Timeline(page, channel, reflects);
        this.#interactions = null;
        return this.#changed();
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && !error.passing) throw refusedAccess(error) ?? error;
        const askedMs = error instanceof ApiError ? (error.retryAfter ?? 0) * 1_000 : 0;
        const { maxMs = MAX_PAUSE_MS } = this.#backoff;
        const retryInMs = Math.max(Math.min(askedMs, maxMs), pauseMs(attempt, this.#backoff));
        this.#enter({ state: 'waiting', retryInMs, reason: error instanceof Error ? error.message : String(error) });
        await pause(retryInMs, signal);
      }
    }
  }

  async #loadOlder(): Promise<void> {
    const timeline = this.#timeline;
    const before = timeline?.olderBefore ?? null;
    if (timeline === null || before === null) return;
    const { position } = timeline;
    timeline.beginOlder();
    let page: Page | null = null;
    try {
      for (let attempt = 1; page === null; attempt += 1) {
        const found = await this.#parts.page(this.#size, before);
        // Else the read models of this server lag: the events in between would be lost.
        if (found.meta.sequence >= position) page = found;
        else await pause(pauseMs(attempt, this.#backoff));
        if (this.#state.state === 'closed' || timeline !== this.#timeline) break;
      }
    } finally {
      timeline.endOlder(page, this.#userId);
      if (timeline === this.#timeline) {
        this.#interactions = null;
        this.#changed();
      }
    }
  }

  async #subscribed(): Promise<ChannelSubscription> {
    this.#start();
    while (this.#subscription === null) {
      if (this.#state.state === 'closed') throw new CommandError('not_acknowledged', 'the view is closed');
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
    return this.#subscription;
  }

  #setPending(message: PendingMessage, shownAt: number | null): void {
    const isShown = shownAt !== null && this.#timeline !== null && shownAt <= this.#timeline.position;
    if (isShown) this.#pending.delete(message.span_id);
    else this.#pending.set(message.span_id, { message, shownAt });
    this.#changed();
  }
}

/** By its `span_id`, the sender knows the event of its message, which may come before the answer. */
function withSpan(post: CommandData['interaction.post'], id: string = randomUuid()): PendingMessage {
  return { ...post, span_id: post.span_id ?? id };
}
