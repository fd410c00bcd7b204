/** Keeps a subscription connected: fetches tickets, opens websockets, and reconnects. */
import { MAX_PAUSE_MS, pauseMs, type BackoffOptions } from './backoff.ts';
import { CLOSE, meaningOf } from './close-codes.ts';
import { CommandOutbox, type TypingCommand } from './commands.ts';
import { Connection, lost, type Ending } from './connection.ts';
import { ApiError, refusedAccess, SubscriptionError } from './errors.ts';
import { Follower, type FollowerOptions, type Step } from './follower.ts';
import { PROTOCOL, type HelloFrame, type ServerFrame } from './frames.ts';
import { ticketOf, type TicketSource } from './tickets.ts';
import { findWebSocket, type WebSocketConstructor } from './websocket.ts';

export type LinkState =
  | { readonly state: 'connecting' }
  /** Receiving events that are older than the connection. */
  | { readonly state: 'replaying'; readonly head: number }
  | { readonly state: 'live' }
  /** Not connected; retries after a pause. */
  | { readonly state: 'waiting'; readonly retryInMs: number; readonly reason: string }
  /** The consumer lags: no events are received until it has taken half of the queue. */
  | { readonly state: 'paused' };

export interface LinkParts {
  readonly channelId: string;
  /** `ws://…` of the channel. */
  readonly url: string;
  readonly tickets: TicketSource;
  readonly WebSocket: WebSocketConstructor | undefined;
  readonly backoff: BackoffOptions;
}

export interface LinkObserver {
  /** Whether drafts and other values are wanted while no events are received. */
  wantsValues(): boolean;
  /** Receives each step that concerns the consumer; `size`: characters of the frame. */
  onStep(step: Step, size: number): void;
  onState(state: LinkState): void;
}

type Unready = { readonly retryInMs: number | null; readonly reason: string };

export class Link {
  readonly outbox: CommandOutbox;
  readonly follower: Follower;
  readonly #parts: LinkParts;
  readonly #observer: LinkObserver;
  readonly #stop = new AbortController();
  #connection: Connection | null = null;
  #hello: HelloFrame | null = null;
  #complaint: string | null = null;
  #failures = 0;
  #refusedTickets = 0;
  /** Why the last connection lost its access, if nothing came since. A token may have expired: the next ticket decides. */
  #lostAccess: SubscriptionError | null = null;
  /** Set while the consumer lags. Commands and values then have a connection without events. */
  #isHeldBack = false;
  /** That connection was refused for good. The next one with events shows whether the subscription has ended. */
  #isAsideRefused = false;
  #skipsPause = false;
  /** Ends the pause of {@link run}. */
  #wake: () => void = () => undefined;
  #flushTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    parts: LinkParts,
    options: FollowerOptions & { answerWithinMs?: number | undefined },
    observer: LinkObserver,
  ) {
    this.#parts = parts;
    this.#observer = observer;
    this.follower = new Follower(options);
    this.outbox = new CommandOutbox(options.answerWithinMs);
  }

  /** Runs until {@link close}. @throws SubscriptionError if a retry cannot succeed */
  async run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const isAside = this.#isHeldBack;
      this.#observer.onState({ state: isAside ? 'paused' : 'connecting' });
      if (isAside && !this.#needsConnectionAside()) {
        await this.#pause(null);
        continue;
      }
      const unready = await this.#attempt(isAside);
      if (signal.aborted || this.#isHeldBack !== isAside || unready === null) continue;
      this.#failures += 1;
      const { backoff } = this.#parts;
      // A proxy may ask for hours.
      const askedMs = Math.min(unready.retryInMs ?? 0, backoff.maxMs ?? MAX_PAUSE_MS);
      const retryInMs = this.#skipsPause ? 0 : Math.max(askedMs, pauseMs(this.#failures, backoff));
      this.#skipsPause = false;
      if (!isAside) this.#observer.onState({ state: 'waiting', retryInMs, reason: unready.reason });
      await this.#pause(retryInMs);
    }
  }

  #needsConnectionAside(): boolean {
    return !this.#isAsideRefused && (!this.outbox.isEmpty || this.#observer.wantsValues());
  }

  /** Sends the commands of the outbox, if connected and as far as the rate allows. */
  flush(): void {
    clearTimeout(this.#flushTimer);
    if (this.#isHeldBack) this.#wake();
    if (this.#connection === null || this.#hello === null) return;
    const { frames, againInMs } = this.outbox.take(performance.now(), this.#hello.max_frame_bytes);
    for (const frame of frames) this.#connection.send(frame);
    if (againInMs !== null) this.#flushTimer = setTimeout(() => this.flush(), againInMs);
  }

  /** False while typing cannot be shown: it is dropped then. */
  admitsTyping(data: TypingCommand | undefined): boolean {
    return this.#hello !== null && this.outbox.admitTyping(data, performance.now());
  }

  /** Receives no events until {@link receiveAgain}, which resumes. */
  holdBack(): void {
    if (this.#isHeldBack) return;
    this.#isHeldBack = true;
    this.#connection?.leave(CLOSE.normal, 'the consumer lags');
  }

  receiveAgain(): void {
    if (!this.#isHeldBack) return;
    this.#isHeldBack = false;
    this.#isAsideRefused = false;
    this.#connection?.leave(CLOSE.normal, 'the consumer has caught up');
    this.#wake();
  }

  /** Connects anew, at once. */
  reconnect(): void {
    this.#skipsPause = this.#connection !== null;
    this.#failures = 0;
    this.#connection?.leave(CLOSE.normal, 'reconnects');
    this.#wake();
  }

  /** After a change of the network: finds out whether the connection is alive, or ends the pause before the next one. */
  check(): void {
    if (this.#connection === null) this.#wake();
    else this.#connection.ask();
  }

  close(): void {
    this.#stop.abort();
    this.#connection?.leave(CLOSE.normal, '');
    this.#wake();
  }

  /** A pause that {@link #wake} ends; without `ms`, nothing else does. */
  async #pause(ms: number | null): Promise<void> {
    if (this.#stop.signal.aborted) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (ms !== null) timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
    this.#wake = () => undefined;
  }

  /** @returns the reason to wait before the next attempt; null to reconnect at once */
  async #attempt(isAside: boolean): Promise<Unready | null> {
    try {
      return await this.#connectOnce(isAside);
    } catch (error) {
      if (!isAside) throw error;
      this.#isAsideRefused = true;
      return null;
    }
  }

  async #connectOnce(isAside: boolean): Promise<Unready | null> {
    const { channelId, tickets, url } = this.#parts;
    let ticket: string;
    try {
      ticket = await ticketOf(tickets, channelId, this.#stop.signal);
    } catch (error) {
      if (this.#lostAccess !== null && error instanceof ApiError && !error.passing) throw this.#lostAccess;
      return withoutTicket(error);
    }
    const WebSocket = this.#parts.WebSocket ?? (await findWebSocket());
    if (WebSocket === null) {
      throw new SubscriptionError('no_websocket', 'there is no WebSocket: install ws, or pass one to the client');
    }
    // Closed, or held back, while the ticket was fetched.
    if (this.#stop.signal.aborted || this.#isHeldBack !== isAside) return null;
    return this.#ended(await this.#connect(WebSocket, url, ticket));
  }

  async #connect(WebSocket: WebSocketConstructor, url: string, ticket: string): Promise<Ending> {
    this.follower.connected({ isAside: this.#isHeldBack });
    this.outbox.connected();
    this.#complaint = null;
    try {
      const socket = new WebSocket(url, [PROTOCOL, `ticket.${ticket}`]);
      this.#connection = new Connection(socket, (frame, size) => this.#receive(frame, size));
      return await this.#connection.ended;
    } catch (error) {
      return lost(String(error));
    } finally {
      this.#connection = null;
      this.#hello = null;
      clearTimeout(this.#flushTimer);
    }
  }

  #receive(frame: ServerFrame, size: number): void {
    for (const step of this.follower.receive(frame, performance.now())) {
      this.#take(step, size);
    }
  }

  #take(step: Step, size: number): void {
    switch (step.do) {
      case 'send':
        this.#connection?.send(step.frame);
        return;
      case 'greeted':
        this.#hello = step.hello;
        this.#refusedTickets = 0;
        this.#connection?.expectHeartbeat(step.hello.heartbeat_ms);
        if (this.#isHeldBack) this.#failures = 0;
        else {
          this.#observer.onStep(step, size);
          this.#observer.onState({ state: 'replaying', head: step.hello.head });
        }
        this.flush();
        return;
      case 'leave':
        this.#connection?.leave(step.code, step.reason);
        return;
      case 'settle':
        this.outbox.settle(step.answer);
        return;
      case 'note':
        this.#complaint = step.complaint;
        return;
      case 'caught up':
        this.#failures = 0;
        this.#lostAccess = null;
        this.#observer.onState({ state: 'live' });
        break;
      case 'event':
        // The connection has worked, so the backoff starts from the beginning.
        this.#failures = 0;
        this.#lostAccess = null;
        break;
      case 'draft':
      case 'ephemeral':
        break;
    }
    this.#observer.onStep(step, size);
  }

  #ended({ code, reason }: Ending): Unready | null {
    const why = [`the connection ended with ${code}`, reason, this.#complaint ?? ''].filter(Boolean).join(': ');
    switch (meaningOf(code, reason)) {
      case 'resume':
        return { retryInMs: null, reason: why };
      case 'new ticket':
        this.#refusedTickets += 1;
        if (this.#refusedTickets < 2) return null;
        throw new SubscriptionError('ticket_refused', `two tickets in a row were refused: ${why}`, code);
      case 'give up': {
        const error = new SubscriptionError(codeOf(code), why, code);
        if (code !== CLOSE.accessLost || this.#lostAccess !== null) throw error;
        this.#lostAccess = error;
        return null;
      }
    }
  }
}

function codeOf(closeCode: number): SubscriptionError['code'] {
  switch (closeCode) {
    case CLOSE.accessLost:
      return 'access_lost';
    case CLOSE.channelGone:
      return 'channel_gone';
    case CLOSE.eventsGone:
      return 'events_gone';
    case CLOSE.unknownVersion:
      return 'unknown_version';
    default:
      return 'protocol_error';
  }
}

function withoutTicket(error: unknown): Unready {
  if (error instanceof ApiError && !error.passing) {
    throw refusedAccess(error) ?? new SubscriptionError('no_ticket', `no ticket: ${error.message}`, null, error);
  }
  const retryInMs = error instanceof ApiError && error.retryAfter !== null ? error.retryAfter * 1_000 : null;
  return { retryInMs, reason: `no ticket: ${error instanceof Error ? error.message : String(error)}` };
}
