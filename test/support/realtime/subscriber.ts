/**
 * A subscriber of one channel that writes down every frame in the order it came, and nothing else: it drops no
 * doubles, sorts nothing and fills no holes, so that what it holds is what the server sent. Whenever its socket
 * ends it gets a new ticket and resumes at its cursor, at the next node.
 */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

import { WebSocket } from 'ws';

import type { ApiClient } from '#test/support/api-client.ts';
import { asRecord } from '#test/support/log-reader.ts';

export type Include = 'ephemeral' | 'nested' | 'incomplete';

/** What came over one socket, from its ticket to its end. */
export interface Session {
  /** The cursor it resumed at; undefined where it asked only for what is new. */
  readonly after: number | undefined;
  readonly node: string;
  /** The texts of the frames behind `hello`, in the order they came. */
  readonly frames: string[];
  hello: Record<string, unknown> | undefined;
  closed: { readonly code: number; readonly reason: string } | undefined;
}

export interface SubscriberOptions {
  readonly name: string;
  readonly channelId: string;
  /** Nodes with the key to get tickets with; each connection goes to the next. */
  readonly nodes: readonly [ApiClient, ...ApiClient[]];
  /** Who gives tickets, in turns; the node itself where it is absent. */
  readonly tickets?: readonly ApiClient[];
  readonly include?: readonly Include[];
  /** Absent: only what is new. */
  readonly after?: number;
  /** Equal texts are kept once among all subscribers that share it. */
  readonly texts?: Map<string, string>;
}

/** Codes that tell a client not to come back. */
const isFinal = (code: number): boolean => code >= 4500;
const RECONNECT_MS = 100;

export class Subscriber {
  readonly name: string;
  readonly channelId: string;
  readonly include: readonly Include[];
  readonly sessions: Session[] = [];
  /** Why connections could not be made, in words. */
  readonly failures: string[] = [];
  /** Last sequence seen, or settled by the first `caught_up`; undefined before either. */
  cursor: number | undefined;
  /** Whether the present session has caught up. */
  live = false;
  readonly #options: SubscriberOptions;
  readonly #texts: Map<string, string>;
  #socket: WebSocket | undefined;
  #stopped = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #turn: number;

  constructor(options: SubscriberOptions, turn = 0) {
    this.name = options.name;
    this.channelId = options.channelId;
    this.include = options.include ?? [];
    this.cursor = options.after;
    this.#options = options;
    this.#texts = options.texts ?? new Map();
    this.#turn = turn;
  }

  /** Connects, and goes on doing so until `stop`, or until the server says not to come back. */
  start(): this {
    this.#ended = this.#run();
    return this;
  }

  /** Cuts the connection, as a network does: without a close frame. It comes back by itself. */
  cut(): void {
    this.#socket?.terminate();
  }

  /** Stops reading from the socket, so that the server cannot get rid of what it sends. */
  pause(): void {
    this.#socket?.pause();
  }

  resume(): void {
    this.#socket?.resume();
  }

  send(frame: object | string): void {
    this.#socket?.send(typeof frame === 'string' ? frame : JSON.stringify(frame));
  }

  get session(): Session | undefined {
    return this.sessions.at(-1);
  }

  /** Ends it for good. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#socket?.terminate();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { nodes, tickets = [] } = this.#options;
    while (!this.#stopped.signal.aborted) {
      const turn = this.#turn++;
      const node = nodes[turn % nodes.length] ?? nodes[0];
      try {
        // Not in step with the nodes: each of them is to meet tickets of every gateway.
        const code = await this.#connect(node, tickets[(turn >> 1) % tickets.length] ?? node);
        if (isFinal(code)) return;
      } catch (error) {
        this.failures.push(error instanceof Error ? error.message : String(error));
      }
      await delay(Math.random() * RECONNECT_MS);
    }
  }

  async #connect(node: ApiClient, tickets: ApiClient): Promise<number> {
    const socket = openSocket(node.baseUrl, this.channelId, await newTicket(tickets, this.channelId));
    if (this.#stopped.signal.aborted) socket.terminate();
    this.#socket = socket;
    const session: Session = {
      after: this.cursor,
      node: node.baseUrl,
      frames: [],
      hello: undefined,
      closed: undefined,
    };
    this.live = false;
    socket.on('message', (data: Buffer, binary: boolean) => {
      if (binary) throw new TypeError(`${this.name} got a binary message`);
      this.#receive(session, data.toString());
    });
    const failed = new Promise<never>((_, reject) => socket.once('error', reject));
    try {
      const [code, reason] = await Promise.race([once(socket, 'close'), failed]);
      session.closed = { code: Number(code), reason: String(reason) };
      return Number(code);
    } finally {
      socket.on('error', () => undefined);
      socket.terminate();
      this.live = false;
    }
  }

  #receive(session: Session, text: string): void {
    const frame = asRecord(JSON.parse(text));
    if (this.session !== session) {
      this.sessions.push(session);
      if (frame['frame'] !== 'hello') {
        session.frames.push(text);
        return;
      }
      session.hello = frame;
      this.send({
        frame: 'resume',
        ...(session.after !== undefined && { after: session.after }),
        ...(this.include.length > 0 && { include: this.include }),
      });
      return;
    }
    if (frame['frame'] === 'ping') {
      this.send({ frame: 'pong' });
      return;
    }
    const known = this.#texts.get(text);
    if (known === undefined) this.#texts.set(text, text);
    session.frames.push(known ?? text);
    if (frame['frame'] === 'event') this.cursor = Number(frame['seq']);
    if (frame['frame'] === 'caught_up') {
      this.cursor ??= Number(frame['seq']);
      this.live = true;
    }
  }
}

/** @throws Error with the answer, if it is no ticket */
export async function newTicket(api: ApiClient, channelId: string): Promise<string> {
  const reply = await api.post(`/api/v1/channels/${channelId}/websocket_ticket`);
  if (reply.status !== 200) throw new Error(`no ticket: ${reply.status} ${reply.text}`);
  return String(asRecord(reply.json())['value']);
}

export function openSocket(
  baseUrl: string,
  channelId: string,
  ticket: string,
  options: { readonly origin?: string } = {},
): WebSocket {
  const url = `${baseUrl.replace('http', 'ws')}/api/v1/channels/${channelId}/websocket`;
  return new WebSocket(url, ['parley.v1', `ticket.${ticket}`], {
    perMessageDeflate: false,
    handshakeTimeout: 10_000,
    ...options,
  });
}
