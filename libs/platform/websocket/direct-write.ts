import { writeSync } from 'node:fs';
import { Socket } from 'node:net';

const NONE = -1;

/**
 * The descriptor of a plain socket; -1 where bytes must go through the stream: it encrypts them, or Node does not
 * tell. `_handle` is not documented: should it go away, all is as before, only dearer.
 */
export function descriptorOf(socket: Socket): number {
  if (socket.constructor !== Socket) return NONE;
  const handle: unknown = Reflect.get(socket, '_handle');
  const descriptor: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : NONE;
  return typeof descriptor === 'number' ? descriptor : NONE;
}

/**
 * Writes to a socket. Where nothing waits in its stream, the kernel is given the bytes at once, without what a
 * stream adds to each write (a request, a callback, a turn of the queue: more than the system call costs itself
 * when one frame goes to thousands of sockets); what it does not take goes through the stream, as does an error.
 *
 * Order holds among these writes and those of the stream. `bytesWritten` does not count what goes past the stream.
 *
 * @param descriptor of this socket, from {@link descriptorOf}
 */
export function writeDirectly(socket: Socket, descriptor: number, bytes: Buffer): void {
  // Once it is destroyed, its descriptor may be another one's.
  const isIdle = descriptor !== NONE && socket.writable && socket.writableLength === 0;
  const taken = isIdle ? takenNow(descriptor, bytes) : 0;
  if (taken < bytes.length) socket.write(taken === 0 ? bytes : bytes.subarray(taken));
}

/** How many of the bytes the kernel has taken. It never waits: sockets of Node are non-blocking. */
function takenNow(descriptor: number, bytes: Buffer): number {
  try {
    return writeSync(descriptor, bytes);
  } catch {
    // Full, or broken: the stream finds out, and tells who listens to it.
    return 0;
  }
}
