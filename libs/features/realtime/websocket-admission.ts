import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

import { Fault } from '#libs/kernel/faults.ts';
import { canonicalId } from '#libs/kernel/ids.ts';
import { authenticateUpgrade, HttpError, type Principal } from '#libs/platform/http/index.ts';
import {
  type ConnectionOwner,
  Handshakes,
  offeredProtocols,
  pathOf,
  queryOf,
  refuseUpgrade,
  type UpgradeHandler,
} from '#libs/platform/websocket/index.ts';
import { CLOSE, type CloseCode, type ChannelGrant } from '#libs/platform/live/index.ts';

import type { RealtimeNode } from './realtime-node.ts';
import { SocketSession } from './socket-session.ts';
import type { Tickets } from './tickets.ts';
import { MAX_CLIENT_FRAME_BYTES, PROTOCOL, TICKET_PREFIX, TOKEN_PREFIX } from './frames.ts';

const PATH = /^\/api\/v1\/channels\/([A-Za-z0-9_-]{1,64})\/websocket$/;
/** Time for a slow reader to receive the close frame, before its unsent bytes are dropped. */
const CLOSE_TIMEOUT_MS = 15_000;

export interface AdmissionOptions {
  readonly tickets: Pick<Tickets, 'redeem'>;
  /** The grant of a caller with a token for a channel; null if it gets none. Throws `store_unavailable` faults. Default: none. */
  readonly grantOfMember?: (caller: Principal, channelId: string) => Promise<ChannelGrant | null>;
  /** Origins whose web pages may connect. A request without `Origin` does not come from a web page. */
  readonly origins: readonly string[];
  /** Whether an origin is the server's own: React Native on Android sends that by itself. */
  readonly isOwnOrigin: (origin: string, request: IncomingMessage) => boolean;
}

/** A parsed upgrade request. */
interface Arrival {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly channelId: string;
  /** A member's token, with which no ticket is needed. */
  readonly token: string | null;
  /** Offered subprotocols, in order, without ticket and token; null without such a header. */
  readonly versions: readonly string[] | null;
  /** The subprotocol of the answer, never the ticket. */
  readonly protocol: string | undefined;
  readonly ticket: string | null;
}

/**
 * Admits websockets: `GET /api/v1/channels/{id}/websocket` with a ticket. Refuses with a close code after the handshake,
 * because web pages cannot see an HTTP error; only an unavailable node answers with one.
 */
export class WebsocketAdmission implements UpgradeHandler {
  readonly #node: RealtimeNode;
  readonly #tickets: AdmissionOptions['tickets'];
  readonly #grantOfMember: AdmissionOptions['grantOfMember'];
  readonly #origins: ReadonlySet<string>;
  readonly #isOwnOrigin: AdmissionOptions['isOwnOrigin'];
  readonly #handshakes = new Handshakes({ maxMessageBytes: MAX_CLIENT_FRAME_BYTES, closeTimeoutMs: CLOSE_TIMEOUT_MS });
  readonly #refusedOwner: ConnectionOwner;

  constructor(node: RealtimeNode, { tickets, grantOfMember, origins, isOwnOrigin }: AdmissionOptions) {
    this.#grantOfMember = grantOfMember;
    this.#node = node;
    this.#tickets = tickets;
    this.#origins = new Set(origins);
    this.#isOwnOrigin = isOwnOrigin;
    this.#refusedOwner = {
      onText() {},
      onBinary() {},
      onControl() {},
      onClosed: (code) => node.live.metrics.closed(code),
    };
  }

  serves(path: string): boolean {
    return PATH.test(path);
  }

  /** Checks in this order: is the node stopping, origin and version, the ticket, its key. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#node.live.isStopping) return refuseForNow(socket);
    const arrival: Arrival = {
      request,
      socket,
      head,
      channelId: canonicalId(PATH.exec(pathOf(request))?.[1] ?? ''),
      ...offerOf(request),
    };
    const { origin } = request.headers;
    if (origin !== undefined && !this.#origins.has(origin) && !this.#isOwnOrigin(origin, request)) {
      return this.#refuse(arrival, CLOSE.refused, 'Pages of this origin may not connect');
    }
    if (arrival.versions !== null && !arrival.versions.includes(PROTOCOL)) {
      return this.#refuse(arrival, CLOSE.version, `This server speaks ${PROTOCOL}`);
    }
    void this.#admit(arrival);
  }

  async #admit(arrival: Arrival): Promise<void> {
    let grant: ChannelGrant | null;
    try {
      grant = await this.#grantOf(arrival);
      // The key may have ended since the ticket was issued.
      if (grant !== null) grant = await this.#node.access.admit(grant);
    } catch (error) {
      if (error instanceof HttpError && error.status === 429) return refuseLookUp(arrival.socket, error);
      if (!(error instanceof Fault)) this.#node.live.warn(error, 'a ticket could not be redeemed');
      return refuseForNow(arrival.socket);
    }
    if (this.#node.live.isStopping) return refuseForNow(arrival.socket);
    if (grant === null || grant.channelId !== arrival.channelId) {
      return this.#refuse(arrival, CLOSE.refused, NO_TICKET);
    }
    const { request, socket, head, protocol } = arrival;
    this.#handshakes.accept(request, socket, head, protocol, (connection) => {
      const session = new SocketSession(this.#node, grant, connection);
      // Once the connection has its owner.
      queueMicrotask(() => session.open());
      return session;
    });
  }

  async #grantOf({ request, ticket, token, channelId }: Arrival): Promise<ChannelGrant | null> {
    if (ticket !== null) return this.#tickets.redeem(ticket);
    const caller = token === null ? null : await authenticateUpgrade(request, token);
    return (caller && (await this.#grantOfMember?.(caller, channelId))) ?? null;
  }

  /** Closes before any frame. */
  #refuse({ request, socket, head, protocol }: Arrival, code: CloseCode, reason: string): void {
    this.#handshakes.accept(request, socket, head, protocol, (connection) => {
      queueMicrotask(() => connection.end(code, reason));
      return this.#refusedOwner;
    });
  }
}

const NO_TICKET = 'No valid ticket';

function refuseForNow(socket: Duplex): void {
  refuseUpgrade(socket, 503, 'store_unavailable', 'Websockets cannot be opened now', { 'retry-after': '2' });
}

function refuseLookUp(socket: Duplex, { message, headers = {} }: HttpError): void {
  refuseUpgrade(socket, 429, 'rate_limited', message, headers);
}

function offerOf(request: IncomingMessage): Pick<Arrival, 'versions' | 'protocol' | 'ticket' | 'token'> {
  const offered = offeredProtocols(request);
  const ticket = offered?.find((name) => name.startsWith(TICKET_PREFIX));
  const token = offered?.find((name) => name.startsWith(TOKEN_PREFIX));
  const secrets = [TICKET_PREFIX, TOKEN_PREFIX];
  const versions = offered?.filter((name) => !secrets.some((prefix) => name.startsWith(prefix))) ?? null;
  return {
    versions,
    // A refusal is answered with a subprotocol, too: without it, a web page could not see the close code.
    protocol: versions?.includes(PROTOCOL) === true ? PROTOCOL : versions?.[0],
    token: token?.slice(TOKEN_PREFIX.length) ?? null,
    ticket: ticket?.slice(TICKET_PREFIX.length) ?? queryOf(request).get('ticket'),
  };
}
