import { STATUS_CODES, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** Serves upgrade requests to its own paths. */
export interface UpgradeHandler {
  /** @param path of the request's URL, without its query */
  serves(path: string): boolean;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** Connects an HTTP server with the handler of its upgrade requests, which start and stop independently. */
export class Upgrades {
  #handler: UpgradeHandler | null = null;
  #servers = 0;

  /** Whether an HTTP server of this process passes its upgrade requests to this object. */
  get isFed(): boolean {
    return this.#servers > 0;
  }

  /** Must be called for a server that passes its upgrade requests. @returns must be called when the server stops */
  feed(): () => void {
    this.#servers += 1;
    return () => void (this.#servers -= 1);
  }

  /** @returns must be called when the handler stops: later requests are answered 503 */
  handle(handler: UpgradeHandler): () => void {
    if (this.#handler !== null) throw new TypeError('upgrades are handled already');
    this.#handler = handler;
    return () => void (this.#handler = null);
  }

  /** Whether the request is an upgrade to a websocket; other upgrades are ignored. */
  claims({ headers, method }: IncomingMessage): boolean {
    return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket';
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', ignoreError);
    const path = pathOf(request);
    if (this.#handler === null) {
      refuseUpgrade(socket, 503, 'stopping', 'This process serves no websockets now', { 'retry-after': '2' });
    } else if (this.#handler.serves(path)) this.#handler.upgrade(request, socket, head);
    else refuseUpgrade(socket, 404, 'not_found', 'Not Found');
  }
}

/** Handles errors until the handshake: a client may disconnect at any time. */
export function ignoreError(): void {}

/** Some clients send the absolute URL, as to a proxy; every server must accept it (RFC 9112, 3.2.2). */
const ORIGIN = /^https?:\/\/[^/?]*/i;

export function pathOf({ url = '/' }: Pick<IncomingMessage, 'url'>): string {
  const query = url.indexOf('?');
  return (query < 0 ? url : url.slice(0, query)).replace(ORIGIN, '');
}

/** The query of the URL. It must not be logged, because it may contain a ticket. */
export function queryOf({ url = '/' }: IncomingMessage): URLSearchParams {
  const query = url.indexOf('?');
  return new URLSearchParams(query < 0 ? '' : url.slice(query + 1));
}

/** Answers with an error of the API, instead of a handshake. */
export function refuseUpgrade(
  socket: Duplex,
  status: 400 | 404 | 429 | 503,
  code: string,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  socket.on('error', ignoreError);
  if (!socket.writable) return void socket.destroy();
  const body = JSON.stringify({ detail, code });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
