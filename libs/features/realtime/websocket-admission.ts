import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

import { Fault } from '#libs/kernel/faults.ts';
import { Handshakes, offeredProtocols, pathOf, queryOf, refuseUpgrade } from '#libs/platform/websocket/index.ts';
import type { ConnectionOwner, UpgradeHandler } from '#libs/platform/websocket/index.ts';

import { CLOSE, MAX_CLIENT_FRAME_BYTES, PROTOCOL, TICKET_PREFIX } from './protocol.ts';
import type { CloseCode } from './protocol.ts';
import type { RealtimeNode } from './realtime-node.ts';
import type { Grant, Tickets } from './realtime.ports.ts';
import { SocketSession } from './socket-session.ts';

const PATH = /^\/api\/v1\/channels\/([A-Za-z0-9_-]{1,64})\/websocket$/;
/** Long enough for a slow reader to find out why; then what it has not taken is thrown away. */
const CLOSE_TIMEOUT_MS = 15_000;

export interface AdmissionOptions {
  readonly tickets: Tickets;
  /** Origins whose web pages may connect. A request without `Origin` comes from no web page. */
  readonly origins: readonly string[];
}

/** Why a socket is closed before any frame. */
interface Refusal {
  readonly code: CloseCode;
  readonly reason: string;
}

/**
 * Lets websockets in: `GET /api/v1/channels/{id}/websocket` with a ticket. Whoever is refused is told with a close
 * code behind the handshake, for a web page sees nothing of an HTTP error; only a node that cannot serve says so
 * in HTTP.
 */
export class WebsocketAdmission implements UpgradeHandler {
  readonly #node: RealtimeNode;
  readonly #tickets: Tickets;
  readonly #origins: ReadonlySet<string>;
  readonly #handshakes = new Handshakes({
    maxMessageBytes: MAX_CLIENT_FRAME_BYTES,
    closeTimeoutMs: CLOSE_TIMEOUT_MS,
  });

  constructor(node: RealtimeNode, { tickets, origins }: AdmissionOptions) {
    this.#node = node;
    this.#tickets = tickets;
    this.#origins = new Set(origins);
  }

  serves(path: string): boolean {
    return PATH.test(path);
  }

  /** 1. whether this node takes anybody 2. origin and version 3. the ticket, once all else is right 4. welcome */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#node.isStopping) return refuseForNow(socket);
    const refusal = this.#refusalOf(request);
    if (refusal !== null) return this.#refuse(request, socket, head, refusal);
    const ticket = ticketOf(request);
    if (ticket === null) return this.#refuse(request, socket, head, NO_TICKET);
    void this.#redeem(ticket, request, socket, head);
  }

  async #redeem(ticket: string, request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    let grant: Grant | null;
    try {
      grant = await this.#tickets.redeem(ticket);
    } catch (error) {
      if (!(error instanceof Fault)) this.#node.warn(error, 'a ticket could not be redeemed');
      return refuseForNow(socket);
    }
    if (this.#node.isStopping) return refuseForNow(socket);
    const channelId = PATH.exec(pathOf(request))?.[1];
    if (grant === null || grant.channelId !== channelId) return this.#refuse(request, socket, head, NO_TICKET);
    this.#welcome(grant, request, socket, head);
  }

  #welcome(grant: Grant, request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const protocol = offeredProtocols(request).includes(PROTOCOL) ? PROTOCOL : undefined;
    this.#handshakes.accept(request, socket, head, protocol, (connection) => {
      const session = new SocketSession(this.#node, grant, connection);
      // Once the connection knows whose it is.
      queueMicrotask(() => session.open());
      return session;
    });
  }

  #refusalOf(request: IncomingMessage): Refusal | null {
    const { origin } = request.headers;
    if (origin !== undefined && !this.#origins.has(origin)) {
      return { code: CLOSE.refused, reason: 'Pages of this origin may not connect' };
    }
    const versions = offeredProtocols(request).filter((name) => !name.startsWith(TICKET_PREFIX));
    const offersNone = request.headers['sec-websocket-protocol'] === undefined;
    if (offersNone || versions.includes(PROTOCOL)) return null;
    return { code: CLOSE.version, reason: `This server speaks ${PROTOCOL}` };
  }

  #refuse(request: IncomingMessage, socket: Duplex, head: Buffer, { code, reason }: Refusal): void {
    // Without an answer to what it offered, a web page would not even see the code. Never the ticket.
    const offered = offeredProtocols(request).filter((name) => !name.startsWith(TICKET_PREFIX));
    const protocol = offered.includes(PROTOCOL) ? PROTOCOL : offered[0];
    this.#handshakes.accept(request, socket, head, protocol, (connection) => {
      queueMicrotask(() => connection.end(code, reason));
      return new Refused(this.#node);
    });
  }
}

const NO_TICKET: Refusal = { code: CLOSE.refused, reason: 'No valid ticket' };

function refuseForNow(socket: Duplex): void {
  refuseUpgrade(socket, 503, 'store_unavailable', 'Websockets cannot be opened now', { 'retry-after': '2' });
}

function ticketOf(request: IncomingMessage): string | null {
  const offered = offeredProtocols(request).find((name) => name.startsWith(TICKET_PREFIX));
  if (offered !== undefined) return offered.slice(TICKET_PREFIX.length);
  return queryOf(request).get('ticket');
}

/** Owns a connection that is being closed: nothing that comes matters. */
class Refused implements ConnectionOwner {
  readonly #node: RealtimeNode;

  constructor(node: RealtimeNode) {
    this.#node = node;
  }

  onText(): void {}

  onBinary(): void {}

  onControl(): void {}

  onClosed(code: number): void {
    this.#node.metrics.closed(code);
  }
}
