import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { ServerResponse } from 'node:http';

const NONE = -1;

/**
 * The file descriptor of a plain socket; -1 if bytes must be written through the stream, because it encrypts them or
 * Node does not expose the descriptor. `_handle` is not documented: without it, writes work, at a higher cost.
 */
export function descriptorOf(socket: Socket): number {
  if (socket.constructor !== Socket) return NONE;
  const descriptor = ofHandle(socket, 'fd');
  return typeof descriptor === 'number' ? descriptor : NONE;
}

/**
 * Writes to a socket. If its stream is empty, passes the bytes directly to the kernel, without the overhead of a stream
 * (a request, a callback, a place in the queue: more than the system call itself costs when one frame is sent to thousands
 * of sockets). The stream writes the bytes that the kernel does not accept, and reports errors.
 *
 * These writes and those of the stream keep their order. `bytesWritten` does not count bytes that bypass the stream.
 *
 * @param descriptor of this socket, from {@link descriptorOf}
 */
export function writeDirectly(socket: Socket, descriptor: number, bytes: Buffer): void {
  // The descriptor of a destroyed socket may belong to another one.
  const isIdle = descriptor !== NONE && socket.writable && socket.writableLength === 0;
  const written = isIdle ? writeNow(descriptor, bytes) : 0;
  if (written < bytes.length) socket.write(written === 0 ? bytes : bytes.subarray(written));
}

/** @returns number of bytes that the kernel has accepted. Never blocks: sockets of Node are non-blocking. */
function writeNow(descriptor: number, bytes: Buffer): number {
  try {
    return writeSync(descriptor, bytes);
  } catch {
    // Full or broken: the stream's write shows which.
    return 0;
  }
}

/**
 * Bytes of a socket that the kernel has accepted so far. Increases while the peer reads, even within one large write,
 * during which the stream reports no progress. `_handle` is not documented: without it, only whole writes count.
 */
export function bytesTaken(socket: Socket): number {
  const [given, queued] = [ofHandle(socket, 'bytesWritten'), ofHandle(socket, 'writeQueueSize')];
  if (typeof given === 'number' && typeof queued === 'number') return given - queued;
  return socket.bytesWritten - socket.writableLength;
}

function ofHandle(socket: Socket, property: string): unknown {
  const handle: unknown = Reflect.get(socket, '_handle');
  return typeof handle === 'object' && handle !== null ? Reflect.get(handle, property) : undefined;
}

type Drainable = Pick<
  Writable,
  'destroyed' | 'writableEnded' | 'writableLength' | 'writableNeedDrain' | 'on' | 'off' | 'write'
>;

/** Resolves when no written bytes are unsent, or the stream is closed. Never rejects. */
export async function drained(stream: Drainable): Promise<void> {
  if (stream.destroyed || stream.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.on('close', done);
    // An ended stream closes when all bytes are sent, and must not be written to.
    if (stream.writableEnded) return;
    // Without a full buffer there is no `drain`; the callback of an empty write follows those of the others.
    if (stream.writableNeedDrain) stream.on('drain', done);
    else stream.write('', done);
  });
}

/** A client with unsent bytes that reads none for this many checks is stalled. */
const STALLED_CHECKS = 20;
const NOTHING_UNSENT = -1;

/**
 * Finds clients that read nothing. The socket's own timeout would take twice as long: it ignores the first time if the
 * queue has changed since the last write.
 */
export class StalledWrites {
  readonly #response: ServerResponse;
  /** Bytes that the kernel had accepted at the last check. */
  #taken = NOTHING_UNSENT;
  #checks = 0;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  /** Called every second. @returns whether the client has read nothing for 20 seconds */
  check(): boolean {
    const { socket, writableLength } = this.#response;
    const taken = socket === null || writableLength === 0 ? NOTHING_UNSENT : bytesTaken(socket);
    this.#checks = taken === this.#taken && taken !== NOTHING_UNSENT ? this.#checks + 1 : 0;
    this.#taken = taken;
    return this.#checks >= STALLED_CHECKS;
  }
}
