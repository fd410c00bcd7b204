import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** Serves upgrade requests to paths that it knows. */
export interface UpgradeHandler {
  /** Whether the path (of the request's URL, without its query) is one of its own. */
  serves(path: string): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/**
 * Where an HTTP server brings upgrade requests and whoever serves websockets takes them, in one process and
 * on one port. The two start and stop on their own.
 */
export class Upgrades {
  #handler: UpgradeHandler | null = null;
  #servers = 0;

  /** Whether there is an HTTP server in this process that brings its upgrade requests here. */
  get isFed(): boolean {
    return this.#servers > 0;
  }

  /** @returns to be called when the server stops */
  feed(): () => void {
    this.#servers += 1;
    return () => void (this.#servers -= 1);
  }

  /** @returns to be called when the handler stops: what comes from then on is answered 503 */
  handle(handler: UpgradeHandler): () => void {
    if (this.#handler !== null) throw new TypeError('upgrades are handled already');
    this.#handler = handler;
    return () => void (this.#handler = null);
  }

  /** Whether the request is an upgrade to a websocket; any other goes the way of requests, as if it asked for none. */
  claims({ headers, method }: IncomingMessage): boolean {
    return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', goneBeforeHandshake);
    const path = pathOf(request);
    if (this.#handler === null) {
      refuseUpgrade(socket, 503, 'stopping', 'This process serves no websockets now', { 'retry-after': '2' });
    } else if (this.#handler.serves(path)) this.#handler.upgrade(request, socket, head);
    else refuseUpgrade(socket, 404, 'not_found', 'Not Found');
  }
}

/** A listener until the handshake, for a peer that goes away is no error of ours. */
export function goneBeforeHandshake(): void {}

/** Some clients name the whole address, as if they spoke to a proxy; every server must take it (RFC 9112, 3.2.2). */
const ORIGIN = /^https?:\/\/[^/?]*/i;

export function pathOf({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  const query = url.indexOf('?');
  return (query < 0 ? url : url.slice(0, query)).replace(ORIGIN, '');
}

/** The parameters behind the path. Never to be logged: there may be a ticket among them. */
export function queryOf({ url = '/' }: IncomingMessage): URLSearchParams {
  const query = url.indexOf('?');
  return new URLSearchParams(query < 0 ? '' : url.slice(query + 1));
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  404: 'Not Found',
  429: 'Too Many Requests',
  503: 'Service Unavailable',
};

/** Answers in the form of the API's errors, instead of a handshake. */
export function refuseUpgrade(
  socket: Duplex,
  status: 400 | 404 | 429 | 503,
  code: string,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  socket.on('error', goneBeforeHandshake);
  if (!socket.writable) return void socket.destroy();
  const body = JSON.stringify({ detail, code });
  const lines = [
    `HTTP/1.1 ${status} ${REASONS[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
