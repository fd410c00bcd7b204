import { createHook } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

export interface WatchedConnections {
  /** Addresses that this process tried to connect to, in order. */
  readonly attempts: readonly string[];
  /** TCP connections that this process asked the system for. */
  readonly requested: number;
  stop(): void;
}

/**
 * Watches every TCP connection that this process tries to open, whether or not anything answers: the number of requests
 * to the system, and their addresses as Node reports them. Needs no privileges, unlike a count of packets.
 */
export function watchConnections(): WatchedConnections {
  const attempts: string[] = [];
  let requested = 0;
  const hook = createHook({
    init(_id, type) {
      if (type === 'TCPCONNECTWRAP') requested += 1;
    },
  }).enable();
  const onSocket = (message: unknown): void => {
    const { socket } = message as { socket: Socket };
    socket.on('connectionAttempt', (address: string) => attempts.push(address));
  };
  subscribe('net.client.socket', onSocket);
  return {
    attempts,
    get requested() {
      return requested;
    },
    stop() {
      hook.disable();
      unsubscribe('net.client.socket', onSocket);
    },
  };
}
