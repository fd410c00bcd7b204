import type { Socket } from 'node:net';

/**
 * Bytes of a socket that the kernel has taken so far. It grows while the peer reads, within one large write, too, of
 * which the stream says nothing before its end. `_handle` is not documented: without it, whole writes count.
 */
export function bytesTaken(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  if (typeof handle === 'object' && handle !== null) {
    const [given, queued]: unknown[] = [Reflect.get(handle, 'bytesWritten'), Reflect.get(handle, 'writeQueueSize')];
    if (typeof given === 'number' && typeof queued === 'number') return given - queued;
  }
  return socket.bytesWritten - socket.writableLength;
}
