/** Shared by the servers that send a frame to all their sockets for each byte that they receive on a port. */
import { type AddressInfo, createServer } from 'node:net';
import { once } from 'node:events';

export interface FrameServerTask {
  /** The text of the frame. */
  readonly frame: string;
}

export interface FrameServerAnswer {
  readonly port: number;
  readonly triggerPort: number;
}

/** @returns the port on which each byte is an event */
export async function listenForTriggers(onEvent: () => void): Promise<number> {
  const server = createServer((socket) => {
    socket.setNoDelay();
    socket.on('data', (bytes) => {
      for (let event = 0; event < bytes.length; event++) onEvent();
    });
    socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return portOf(server.address());
}

export function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new TypeError('the server does not listen on a port');
  return address.port;
}
