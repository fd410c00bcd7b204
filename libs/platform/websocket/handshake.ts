import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { Socket } from 'node:net';

import { WebSocketServer } from 'ws';

import { Connection, type ConnectionOwner } from './connection.ts';
import { ignoreError } from './upgrades.ts';

export interface HandshakeOptions {
  /** Size of the largest message; a larger one closes with 1009. */
  readonly maxMessageBytes: number;
  /** Milliseconds that a peer has to answer a close, before the socket is destroyed. */
  readonly closeTimeoutMs: number;
}

/** Turns upgrade requests into connections. Without extensions: frames are the same bytes for every socket. */
export class Handshakes {
  readonly #server: WebSocketServer;
  /** The answer of `#server` in the current handshake: handshakes are synchronous. */
  #protocol: string | undefined;

  constructor({ maxMessageBytes, closeTimeoutMs }: HandshakeOptions) {
    const options = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: maxMessageBytes,
      closeTimeout: closeTimeoutMs,
      // The library would destroy the connection, without a close frame, when 60 pongs wait for their write. The owner
      // gets each ping and closes with a code that shows the reason.
      maxPendingAutoPongs: 0,
      WebSocket: Connection,
      handleProtocols: () => this.#protocol ?? false,
    } as const;
    this.#server = new WebSocketServer(options);
  }

  /**
   * Completes the handshake, or answers 400 or 405 to an invalid one.
   *
   * @param protocol the offered one to answer with
   * @param owned called before any other event of the connection
   */
  accept(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    protocol: string | undefined,
    owned: (connection: Connection) => ConnectionOwner,
  ): void {
    if (!(socket instanceof Socket)) return void socket.destroy();
    this.#protocol = protocol;
    // Sends the answer together with the owner's first frame, if that is written at once.
    socket.cork();
    this.#server.handleUpgrade(request, socket, head, (connection) => {
      // The server makes its sockets of this class: see the options.
      if (connection instanceof Connection) connection.own(socket, owned(connection));
    });
    // From now on the library handles errors of the connection.
    socket.off('error', ignoreError);
    queueMicrotask(() => socket.uncork());
  }
}

/** Subprotocols that a request offers, in its order; undefined without such a header. */
export function offeredProtocols(request: IncomingMessage): readonly string[] | undefined {
  return request.headers['sec-websocket-protocol']
    ?.split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
