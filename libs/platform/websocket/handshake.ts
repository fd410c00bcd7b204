import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { Socket } from 'node:net';

import { WebSocketServer } from 'ws';

import { Connection } from './connection.ts';
import type { ConnectionOwner } from './connection.ts';
import { goneBeforeHandshake } from './upgrades.ts';

export interface HandshakeOptions {
  /** Bytes of the largest message; a larger one closes with 1009. */
  readonly maxMessageBytes: number;
  /** Milliseconds that a peer has to answer a close, before the socket is cut. */
  readonly closeTimeoutMs: number;
}

/** Turns upgrade requests into connections. No extensions: frames are the same bytes for every socket. */
export class Handshakes {
  readonly #server: WebSocketServer;
  /** What `#server` is to answer for the handshake that runs: handshakes are synchronous. */
  #protocol: string | undefined;

  constructor({ maxMessageBytes, closeTimeoutMs }: HandshakeOptions) {
    const options = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: maxMessageBytes,
      closeTimeout: closeTimeoutMs,
      // The library would cut the connection, without a close frame, when 60 pongs wait for their write. The owner is
      // told of each ping and closes with a code that says why.
      maxPendingAutoPongs: 0,
      WebSocket: Connection,
      handleProtocols: () => this.#protocol ?? false,
    } as const;
    this.#server = new WebSocketServer(options);
  }

  /**
   * Completes the handshake, or answers 400 or 405 to what is none.
   *
   * @param protocol of those that the request offers: the one to answer with
   * @param owned called before anything else can happen on the connection
   */
  accept(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    protocol: string | undefined,
    owned: (connection: Connection) => ConnectionOwner,
  ): void {
    if (!(socket instanceof Socket)) return void socket.destroy();
    // The library has its own, now and for as long as the connection lasts.
    setImmediate(() => socket.off('error', goneBeforeHandshake));
    this.#protocol = protocol;
    // The answer goes out with what the owner says first, if that is at once.
    socket.cork();
    this.#server.handleUpgrade(request, socket, head, (connection) => {
      // The server was told to make its sockets of this class.
      if (connection instanceof Connection) connection.own(socket, owned(connection));
    });
    queueMicrotask(() => socket.uncork());
  }
}

/** Subprotocols that a request offers, in its order; undefined where it says nothing of any. */
export function offeredProtocols(request: IncomingMessage): readonly string[] | undefined {
  return request.headers['sec-websocket-protocol']
    ?.split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
