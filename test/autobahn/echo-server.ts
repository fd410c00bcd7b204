/** The echo server that Autobahn requires, on Parley's websocket connections: every message comes back unchanged. */
import { once } from 'node:events';
import { createServer } from 'node:http';

import { Handshakes, textFrame } from '#libs/platform/websocket/index.ts';

/** The longest message of the suite. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

export interface EchoServer {
  readonly port: number;
  stop(): Promise<void>;
}

export async function startEchoServer(): Promise<EchoServer> {
  const handshakes = new Handshakes({ maxMessageBytes: MAX_MESSAGE_BYTES, closeTimeoutMs: 1_000 });
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    handshakes.accept(request, socket, head, undefined, (connection) => {
      // Parley itself refuses binary messages and does not read their content.
      connection.on('message', (data: Buffer, binary: boolean) => binary && connection.send(data));
      return {
        onText: (message) => void connection.write(textFrame(message)),
        onBinary: () => undefined,
        onControl: () => undefined,
        onClosed: () => undefined,
      };
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('the server does not listen on a port');
  return {
    port: address.port,
    async stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
