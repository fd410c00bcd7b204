/** TCP in front of a server, so that connections can be cut under both sides: no close frame, no last byte. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export interface CutProxy {
  /** `http://127.0.0.1:PORT` */
  readonly baseUrl: string;
  /** Cuts every connection that is open now. @returns how many there were */
  cut(): number;
  /** Passes nothing on, over connections that are open or will be, until `speak`: nothing is lost by it. */
  silence(): void;
  speak(): void;
  stop(): Promise<void>;
}

/** @param target `http://127.0.0.1:PORT`; it may be away, its clients are cut off then */
export async function startCutProxy(target: string): Promise<CutProxy> {
  const { hostname, port } = new URL(target);
  const open = new Set<Socket>();
  let silent = false;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    open.add(client).add(upstream);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('error', () => to.destroy());
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
      from.on('data', (bytes) => to.write(bytes));
      if (silent) from.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  const cut = (): number => {
    const sockets = [...open];
    for (const socket of sockets) socket.resetAndDestroy();
    return sockets.length / 2;
  };
  return {
    baseUrl: `http://127.0.0.1:${address.port}`,
    cut,
    silence() {
      silent = true;
      for (const socket of open) socket.pause();
    },
    speak() {
      silent = false;
      for (const socket of open) socket.resume();
    },
    async stop() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
