/** Keeps a subscription connected: fetches tickets, opens websockets, and reconnects. */
import { pauseMs, type BackoffOptions } from './backoff.ts';
import { CLOSE, meaningOf } from './close-codes.ts';
import { CommandOutbox } from './commands.ts';
import { Connection, lost, type Ending } from './connection.ts';
import { ApiError, SubscriptionError } from './errors.ts';
import { Follower, type FollowerOptions, type Step } from './follower.ts';
import { PROTOCOL, type HelloFrame, type ServerFrame } from './frames.ts';
import { findWebSocket, type WebSocketConstructor } from './websocket.ts';

/** Opens one websocket of one channel, once, within a minute. */
export interface Ticket {
  readonly value: string;
}

/**
 * Fetches a ticket. A web page must not hold an API key, so it asks its own backend, which asks Parley.
 *
 * An {@link ApiError} that is not `passing` (its `status` is 4xx, except 408, 425 and 429) ends the subscription; after
 * every other error the client retries.
 */
export type TicketSource = (channelId: string, signal: AbortSignal) => Promise<Ticket>;

export type LinkState =
  | { readonly state: 'connecting' }
  /** Receiving events that are older than the connection. */
  | { readonly state: 'replaying'; readonly head: number }
  | { readonly state: 'live' }
  /** Not connected; retries after a pause. */
  | { readonly state: 'waiting'; readonly retryInMs: number; readonly reason: string }
  /** The consumer lags: disconnected until it has taken half of the queue. */
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
  /** Receives each step that concerns the consumer; `size`: characters of the frame. */
  onStep(step: Step, size: number): void;
  onState(state: LinkState): void;
}

type Unready = { readonly retryInMs: number | null; readonly reason: string };

export class Link {
  readonly outbox = new CommandOutbox();
  readonly follower: Follower;
  readonly #parts: LinkParts;
  readonly #observer: LinkObserver;
  readonly #stop = new AbortController();
  #connection: Connection | null = null;
  #hello: HelloFrame | null = null;
  #complaint: string | null = null;
  #failures = 0;
  #refusedTickets = 0;
  #room: { readonly made: Promise<void>; readonly make: () => void } | null = null;
  #flushTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(parts: LinkParts, options: FollowerOptions, observer: LinkObserver) {
    this.#parts = parts;
    this.#observer = observer;
    this.follower = new Follower(options);
  }

  /** Runs until {@link close}. @throws SubscriptionError if a retry cannot succeed */
  async run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      if (this.#room !== null) {
        this.#observer.onState({ state: 'paused' });
        await this.#room.made;
        continue;
      }
      this.#observer.onState({ state: 'connecting' });
      const unready = await this.#connectOnce();
      if (signal.aborted || this.#room !== null || unready === null) continue;
      this.#failures += 1;
      const retryInMs = Math.max(unready.retryInMs ?? 0, pauseMs(this.#failures, this.#parts.backoff));
      this.#observer.onState({ state: 'waiting', retryInMs, reason: unready.reason });
      await pause(retryInMs, signal);
    }
  }

  /** Sends the commands of the outbox, if connected and as far as the rate allows. */
  flush(): void {
    clearTimeout(this.#flushTimer);
    if (this.#connection === null || this.#hello === null) return;
    const { frames, againInMs } = this.outbox.take(Date.now(), this.#hello.max_frame_bytes);
    for (const frame of frames) this.#connection.send(frame);
    if (againInMs !== null) this.#flushTimer = setTimeout(() => this.flush(), againInMs);
  }

  /** Disconnects until {@link receiveAgain}, which resumes. */
  holdBack(): void {
    if (this.#room !== null) return;
    let make = (): void => undefined;
    const made = new Promise<void>((resolve) => (make = resolve));
    this.#room = { made, make };
    this.#connection?.leave(CLOSE.normal, 'the consumer lags');
  }

  receiveAgain(): void {
    this.#room?.make();
    this.#room = null;
  }

  close(): void {
    this.#stop.abort();
    this.#connection?.leave(CLOSE.normal, '');
    this.receiveAgain();
  }

  /** @returns the reason to wait before the next attempt; null to reconnect at once */
  async #connectOnce(): Promise<Unready | null> {
    const { channelId, tickets, url } = this.#parts;
    const { signal } = this.#stop;
    let value: string;
    try {
      ({ value } = await tickets(channelId, signal));
    } catch (error) {
      return withoutTicket(error);
    }
    const WebSocket = this.#parts.WebSocket ?? (await findWebSocket());
    if (WebSocket === null) {
      throw new SubscriptionError('no_websocket', 'there is no WebSocket: install ws, or pass one to the client');
    }
    // Closed while the ticket was fetched.
    if (signal.aborted || this.#room !== null) return null;
    return this.#ended(await this.#connect(WebSocket, url, value));
  }

  async #connect(WebSocket: WebSocketConstructor, url: string, ticket: string): Promise<Ending> {
    this.follower.connected();
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
    for (const step of this.follower.receive(frame, Date.now())) {
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
        this.#observer.onState({ state: 'replaying', head: step.hello.head });
        this.#observer.onStep(step, size);
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
        this.#observer.onState({ state: 'live' });
        break;
      case 'event':
        // The connection has worked, so the backoff starts from the beginning.
        this.#failures = 0;
        break;
      case 'draft':
      case 'ephemeral':
        break;
    }
    this.#observer.onStep(step, size);
  }

  #ended({ code, reason }: Ending): Unready | null {
    const why = [`the connection ended with ${code}`, reason, this.#complaint ?? ''].filter(Boolean).join(': ');
    switch (meaningOf(code)) {
      case 'resume':
        return { retryInMs: null, reason: why };
      case 'new ticket':
        this.#refusedTickets += 1;
        if (this.#refusedTickets < 2) return null;
        throw new SubscriptionError('ticket_refused', `two tickets in a row were refused: ${why}`, code);
      case 'give up':
        throw new SubscriptionError(codeOf(code), why, code);
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
    const code = error.status === 401 || error.status === 403 ? 'access_lost' : 'no_ticket';
    throw new SubscriptionError(code, `no ticket: ${error.message}`, null, error);
  }
  const retryInMs = error instanceof ApiError && error.retryAfter !== null ? error.retryAfter * 1_000 : null;
  return { retryInMs, reason: `no ticket: ${error instanceof Error ? error.message : String(error)}` };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
  });
}
