import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

import { Fault } from '#libs/kernel/faults.ts';
import { Handshakes, offeredProtocols, pathOf, queryOf, refuseUpgrade } from '#libs/platform/websocket/index.ts';
import type { ConnectionOwner, UpgradeHandler } from '#libs/platform/websocket/index.ts';

import { CLOSE, MAX_CLIENT_FRAME_BYTES, PROTOCOL, TICKET_PREFIX } from './protocol.ts';
import type { CloseCode } from './protocol.ts';
import type { RealtimeNode } from './realtime-node.ts';
import type { Grant, ListenerAccess, Tickets } from './realtime.ports.ts';
import { SocketSession } from './socket-session.ts';

const PATH = /^\/api\/v1\/channels\/([A-Za-z0-9_-]{1,64})\/websocket$/;
/** Long enough for a slow reader to find out why; then what it has not taken is thrown away. */
const CLOSE_TIMEOUT_MS = 15_000;

export interface AdmissionOptions {
  readonly tickets: Tickets;
  readonly access: Pick<ListenerAccess, 'admit'>;
  /** Origins whose web pages may connect. A request without `Origin` comes from no web page. */
  readonly origins: readonly string[];
}

/** A request for a websocket, read once. */
interface Arrival {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly channelId: string | undefined;
  /** Protocols that it offers, in its order, without the ticket; null where it says nothing of any. */
  readonly versions: readonly string[] | null;
  /** The one of them to answer with: never the ticket. */
  readonly protocol: string | undefined;
  readonly ticket: string | null;
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
  readonly #access: Pick<ListenerAccess, 'admit'>;
  readonly #origins: ReadonlySet<string>;
  readonly #handshakes = new Handshakes({
    maxMessageBytes: MAX_CLIENT_FRAME_BYTES,
    closeTimeoutMs: CLOSE_TIMEOUT_MS,
  });

  constructor(node: RealtimeNode, { tickets, access, origins }: AdmissionOptions) {
    this.#node = node;
    this.#tickets = tickets;
    this.#access = access;
    this.#origins = new Set(origins);
  }

  serves(path: string): boolean {
    return PATH.test(path);
  }

  /** 1. whether this node accepts sockets 2. origin and version 3. the ticket and its key, as they are now 4. welcome */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#node.isStopping) return refuseForNow(socket);
    const arrival: Arrival = { request, socket, head, channelId: PATH.exec(pathOf(request))?.[1], ...offerOf(request) };
    const refusal = this.#refusalOf(arrival);
    if (refusal !== null) return this.#refuse(arrival, refusal);
    if (arrival.ticket === null) return this.#refuse(arrival, NO_TICKET);
    void this.#redeem(arrival.ticket, arrival);
  }

  async #redeem(ticket: string, arrival: Arrival): Promise<void> {
    let grant: Grant | null;
    try {
      grant = await this.#tickets.redeem(ticket);
      // The key may have ended since the ticket was issued.
      if (grant !== null) grant = await this.#access.admit(grant);
    } catch (error) {
      if (!(error instanceof Fault)) this.#node.warn(error, 'a ticket could not be redeemed');
      return refuseForNow(arrival.socket);
    }
    if (this.#node.isStopping) return refuseForNow(arrival.socket);
    if (grant === null || grant.channelId !== arrival.channelId) return this.#refuse(arrival, NO_TICKET);
    this.#welcome(grant, arrival);
  }

  #welcome(grant: Grant, { request, socket, head, protocol }: Arrival): void {
    this.#handshakes.accept(request, socket, head, protocol, (connection) => {
      const session = new SocketSession(this.#node, grant, connection);
      // Once the connection knows whose it is.
      queueMicrotask(() => session.open());
      return session;
    });
  }

  #refusalOf({ request, versions }: Arrival): Refusal | null {
    const { origin } = request.headers;
    if (origin !== undefined && !this.#origins.has(origin)) {
      return { code: CLOSE.refused, reason: 'Pages of this origin may not connect' };
    }
    if (versions === null || versions.includes(PROTOCOL)) return null;
    return { code: CLOSE.version, reason: `This server speaks ${PROTOCOL}` };
  }

  #refuse({ request, socket, head, protocol }: Arrival, { code, reason }: Refusal): void {
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

function offerOf(request: IncomingMessage): Pick<Arrival, 'versions' | 'protocol' | 'ticket'> {
  const offered = offeredProtocols(request);
  const ticket = offered?.find((name) => name.startsWith(TICKET_PREFIX));
  const versions = offered?.filter((name) => !name.startsWith(TICKET_PREFIX)) ?? null;
  return {
    versions,
    // Also to who is refused: without an answer to what it offered, a web page would not even see the code.
    protocol: versions?.includes(PROTOCOL) === true ? PROTOCOL : versions?.[0],
    ticket: ticket?.slice(TICKET_PREFIX.length) ?? queryOf(request).get('ticket'),
  };
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
