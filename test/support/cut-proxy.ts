/** TCP proxy in front of a server. It cuts connections under both sides: no close frame, no last byte. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CutProxy {
  /** `http://127.0.0.1:PORT` */
  readonly baseUrl: string;
  /**
   * Cuts all open connections.
   * @returns how many there were
   */
  cut(): number;
  /** Holds back all bytes, on current and new connections, until `speak`, which delivers them. */
  silence(): void;
  speak(): void;
  /** Connects new clients to another target; open connections stay. */
  redirect(target: string): void;
  stop(): Promise<void>;
}

/** @param target `http://127.0.0.1:PORT`; while it is down, its clients are disconnected */
export async function startCutProxy(target: string): Promise<CutProxy> {
  let { hostname, port } = new URL(target);
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
    redirect(next) {
      ({ hostname, port } = new URL(next));
    },
    async stop() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}
