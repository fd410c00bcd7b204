import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

export interface RawServer {
  readonly port: number;
  /** Accepted connections. */
  readonly accepted: number;
  /** Heads of requests, in order of arrival. */
  readonly requests: readonly string[];
  /** Connections that are open now. */
  readonly open: number;
  stop(): Promise<void>;
}

/**
 * A TCP server that answers each request with whatever `answer` writes, valid HTTP or not.
 *
 * @param answer `path` of the request; null: a connection was opened and nothing was sent yet
 */
export async function startRawServer(
  answer: (socket: Socket, path: string, head: string) => void,
  {
    server = createServer(),
    address = '127.0.0.1',
    secure = false,
  }: { server?: Server; address?: string; secure?: boolean } = {},
): Promise<RawServer> {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on('connection', () => (accepted += 1));
  server.on(secure ? 'secureConnection' : 'connection', (socket: Socket) => {
    sockets.add(socket);
    let received = '';
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      for (let end = received.indexOf('\r\n\r\n'); end !== -1; end = received.indexOf('\r\n\r\n')) {
        const head = received.slice(0, end);
        received = received.slice(end + 4);
        requests.push(head);
        answer(socket, head.split(' ')[1] ?? '', head);
      }
    });
  });
  server.listen(0, address);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    get accepted() {
      return accepted;
    },
    get open() {
      return sockets.size;
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** A response with a body of known length. */
export function response(
  body: string | Buffer = '',
  headers: Readonly<Record<string, string>> = {},
  status = '200 OK',
): Buffer {
  const lines = Object.entries({ 'content-length': String(Buffer.byteLength(body)), ...headers });
  const head = [`HTTP/1.1 ${status}`, ...lines.map(([name, value]) => `${name}: ${value}`), '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
}
