/** TCP in front of a server, so that connections can be cut under both sides: no close frame, no last byte. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export interface CutProxy {
  /** `http://127.0.0.1:PORT` */
  readonly baseUrl: string;
  /** Cuts every connection that is open now. @returns how many there were */
  cut(): number;
  stop(): Promise<void>;
}

/** @param target `http://127.0.0.1:PORT`; it may be away, its clients are cut off then */
export async function startCutProxy(target: string): Promise<CutProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    open.add(client);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('error', () => to.destroy());
      from.on('close', () => {
        open.delete(client);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  const cut = (): number => {
    const sockets = [...open];
    for (const socket of sockets) socket.resetAndDestroy();
    return sockets.length;
  };
  return {
    baseUrl: `http://127.0.0.1:${address.port}`,
    cut,
    async stop() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
