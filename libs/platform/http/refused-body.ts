import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** More than the largest file that Parley takes. */
const MAX_DISCARDED_BYTES = 160 * 1024 * 1024;
const MAX_DISCARDING_MS = 15_000;
/** Shorter, because the end of what such a connection sends cannot be recognized. */
const MAX_BROKEN_MS = 5_000;
/** A stop waits no longer for the rest of a body: the client has had its reply. */
const MAX_STOPPING_MS = 1_000;

const discarding = new WeakSet<Socket>();

/** Whether the connection has its reply, and only the rest of a refused body still arrives. */
export function isDiscarding(socket: Socket): boolean {
  return discarding.has(socket);
}

/**
 * Sends a reply that may come before the body of its request has been read. The rest of the body is then read and
 * discarded, within bounds, before the reply ends: a connection that closes with unread bytes is reset, and then clients
 * see a broken pipe, and proxies answer 502, instead of the reply.
 */
export function sendBeforeBody({ raw, server }: FastifyRequest, reply: FastifyReply, body: Buffer): void {
  if (!hasUnreadBody(raw)) return void reply.send(body);
  const whole = Readable.from(beforeRest(raw, server.closing, body), { objectMode: false });
  // The length lets the client read the whole reply before it ends.
  void reply.header('content-length', body.length).send(whole);
}

/** `sendBeforeBody` for a reply that Fastify does not make. */
export function endBeforeBody(
  raw: IncomingMessage,
  closing: AbortSignal,
  response: ServerResponse,
  body: string,
): void {
  response.write(body);
  void discardBody(raw, closing).then(() => response.end());
}

/** Sends the last bytes of a connection whose requests cannot be read any more, discards what still arrives, and closes. */
export function endConnection(socket: Socket, bytes: string): void {
  discarding.add(socket);
  const bound = discardBound(MAX_BROKEN_MS, () => socket.destroy());
  socket.once('close', bound.end);
  // Takes the connection from the parser, which would report every further chunk as an error.
  socket.on('data', bound.count);
  socket.once('end', () => socket.destroy());
  socket.end(bytes);
}

function hasUnreadBody({ complete, headers, readableEnded }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return !complete && !readableEnded && (headers['transfer-encoding'] !== undefined || (length ?? '0') !== '0');
}

async function* beforeRest(raw: IncomingMessage, closing: AbortSignal, body: Buffer): AsyncGenerator<Buffer> {
  yield body;
  await discardBody(raw, closing);
}

/** Resolves when the body has ended, or its connection. Ends the connection of a body that is too large or too slow. */
function discardBody(raw: IncomingMessage, closing: AbortSignal): Promise<void> {
  const { socket } = raw;
  return new Promise((resolve) => {
    const bound = discardBound(MAX_DISCARDING_MS, () => socket.destroy());
    const hurry = (): void => bound.endWithin(MAX_STOPPING_MS);
    // The client has sent its last byte, but not all of the body: nothing else would end the connection.
    const leave = (): void => void socket.end();
    const end = (): void => {
      bound.end();
      socket.off('end', leave);
      closing.removeEventListener('abort', hurry);
      discarding.delete(socket);
      resolve();
    };
    if (raw.complete || raw.destroyed) return end();
    discarding.add(socket);
    raw.once('end', end).once('close', end);
    socket.once('end', leave);
    if (closing.aborted) hurry();
    else closing.addEventListener('abort', hurry, { once: true });
    // Not `resume`, which does nothing while a reader that was interrupted still waits for `readable`.
    raw.on('readable', () => {
      for (let chunk: Buffer | null; (chunk = raw.read() as Buffer | null) !== null;) bound.count(chunk);
    });
  });
}

function discardBound(maxMs: number, exceeded: () => void) {
  let bytes = 0;
  let tooSlow = setTimeout(exceeded, maxMs).unref();
  return {
    /** Replaces the limit of time. */
    endWithin(leftMs: number): void {
      clearTimeout(tooSlow);
      tooSlow = setTimeout(exceeded, leftMs).unref();
    },
    count(chunk: Buffer): void {
      bytes += chunk.length;
      if (bytes > MAX_DISCARDED_BYTES) exceeded();
    },
    end: () => clearTimeout(tooSlow),
  };
}
