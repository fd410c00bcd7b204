/**
 * A subscriber of one channel that records every frame in the order of arrival. It does not drop duplicates, sort, or
 * fill gaps, so its record is what the server sent. When its socket closes, it resumes at its cursor with a new ticket,
 * at the next node.
 */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

import { WebSocket } from 'ws';

import type { ApiClient } from '#test/support/api-client.ts';
import { asRecord } from '#test/support/log-reader.ts';

export type Include = 'ephemeral' | 'nested' | 'incomplete';

/** The frames of one socket. */
export interface Session {
  /** The cursor that it resumed at; undefined if it asked only for new events. */
  readonly after: number | undefined;
  readonly node: string;
  /** Texts of the frames after `hello`, in the order of arrival. */
  readonly frames: string[];
  hello: Record<string, unknown> | undefined;
  closed: { readonly code: number; readonly reason: string } | undefined;
}

export interface SubscriberOptions {
  readonly name: string;
  readonly channelId: string;
  /** Nodes, with the key for tickets; each connection goes to the next one. */
  readonly nodes: readonly [ApiClient, ...ApiClient[]];
  /** Gateways that issue tickets, in turn. Default: the node itself. */
  readonly tickets?: readonly ApiClient[];
  readonly include?: readonly Include[];
  /** Absent: only new events. */
  readonly after?: number;
  /** Interns equal texts of all subscribers with the same map. */
  readonly texts?: Map<string, string>;
}

/** Codes after which clients must not reconnect. */
const isFinal = (code: number): boolean => code >= 4500;
const RECONNECT_MS = 100;

export class Subscriber {
  readonly name: string;
  readonly channelId: string;
  readonly include: readonly Include[];
  readonly sessions: Session[] = [];
  /** Messages of failed connections. */
  readonly failures: string[] = [];
  /** Last sequence received, or that of the first `caught_up`; undefined before either. */
  cursor: number | undefined;
  /** Whether the current session has caught up. */
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

  /** Connects and reconnects until `stop`, or until a close code forbids it. */
  start(): this {
    this.#ended = this.#run();
    return this;
  }

  /** Cuts the connection without a close frame. The subscriber reconnects. */
  cut(): void {
    this.#socket?.terminate();
  }

  /** Stops reading from the socket, so that the server's unsent bytes grow. */
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
        // Each node redeems tickets of every gateway.
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

/** @throws Error with the response, if it has no ticket */
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
