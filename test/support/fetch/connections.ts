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
 *
 * @param isWatched whether connections to a port count; a client of an earlier test in this process may still reconnect
 */
export function watchConnections(isWatched: (port: number) => boolean): WatchedConnections {
  const attempts: string[] = [];
  /** Node sets the port after the hook. */
  const requests: { readonly port?: number }[] = [];
  const hook = createHook({
    init(_id, type, _triggerId, resource) {
      if (type === 'TCPCONNECTWRAP') requests.push(resource);
    },
  }).enable();
  const onSocket = (message: unknown): void => {
    const { socket } = message as { socket: Socket };
    socket.on('connectionAttempt', (address: string, port: number) => {
      if (isWatched(port)) attempts.push(address);
    });
  };
  subscribe('net.client.socket', onSocket);
  return {
    attempts,
    get requested() {
      // One without a port counts: nothing is overlooked if Node changes.
      return requests.filter(({ port }) => port === undefined || isWatched(port)).length;
    },
    stop() {
      hook.disable();
      unsubscribe('net.client.socket', onSocket);
    },
  };
}
