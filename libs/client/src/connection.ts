/** One websocket: parses frames, and detects a dead connection. */
import { CLOSE } from './close-codes.ts';
import type { ClientFrame, ServerFrame } from './frames.ts';
import type { WebSocketLike } from './websocket.ts';

export interface Ending {
  readonly code: number;
  readonly reason: string;
}

/** Time limit from the start of the handshake to `hello`. */
const HELLO_WITHIN_MS = 15_000;
/** Time limit of the answer to a ping, which the client sends after a heartbeat interval without a frame. */
const ANSWER_WITHIN_MS = 10_000;

/** Close code of a connection that ended without a close frame. */
const LOST = 1006;

export class Connection {
  /** Resolves when the connection has ended, for any reason. */
  readonly ended: Promise<Ending>;
  readonly #socket: WebSocketLike;
  #end: ((ending: Ending) => void) | null = null;
  #timer: ReturnType<typeof setTimeout>;
  /** Milliseconds; null before `hello`. */
  #heartbeatMs: number | null = null;
  /** Monotonic. */
  #receivedAtMs = 0;

  /** @param onFrame receives each frame with the length of its text */
  constructor(socket: WebSocketLike, onFrame: (frame: ServerFrame, size: number) => void) {
    this.#socket = socket;
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.#timer = setTimeout(() => this.leave(CLOSE.noPong, 'no hello'), HELLO_WITHIN_MS);
    socket.addEventListener('message', ({ data }) => {
      if (this.#end === null) return;
      this.#receivedAtMs = performance.now();
      const frame = frameOf(data);
      if (frame === null) this.leave(CLOSE.outOfStep, 'a message is not a frame');
      else onFrame(frame, String(data).length);
    });
    socket.addEventListener('close', ({ code, reason }) => this.#over({ code, reason }));
    // `close` follows and carries the reason; but `ws` throws errors without a listener.
    socket.addEventListener('error', () => undefined);
  }

  /** After `hello`: the server sends a frame at least this often. */
  expectHeartbeat(everyMs: number): void {
    this.#heartbeatMs = everyMs;
    this.#watch(everyMs);
  }

  #watch(everyMs: number): void {
    clearTimeout(this.#timer);
    const silentMs = performance.now() - this.#receivedAtMs;
    this.#timer = setTimeout(
      () => {
        if (performance.now() - this.#receivedAtMs < everyMs) this.#watch(everyMs);
        else this.ask();
      },
      Math.max(1, everyMs - silentMs),
    );
  }

  /** Ends the connection unless the server answers: after a long silence, or a change of the network. */
  ask(): void {
    const everyMs = this.#heartbeatMs;
    if (everyMs === null) return;
    clearTimeout(this.#timer);
    const askedAtMs = performance.now();
    this.send({ frame: 'ping' });
    this.#timer = setTimeout(() => {
      if (this.#receivedAtMs >= askedAtMs) this.#watch(everyMs);
      else this.leave(CLOSE.noPong, 'no pong');
    }, ANSWER_WITHIN_MS);
  }

  /** Does nothing after the connection has ended. */
  send(frame: ClientFrame): void {
    if (this.#end !== null) this.#socket.send(JSON.stringify(frame));
  }

  /** Ends the connection without waiting for the closing handshake, which a dead network would delay. */
  leave(code: number, reason: string): void {
    if (this.#end === null) return;
    this.#over({ code, reason });
    try {
      this.#socket.close(code, reason.slice(0, 100));
    } catch {
      // Still connecting, or closed already.
    }
  }

  #over(ending: Ending): void {
    clearTimeout(this.#timer);
    this.#end?.(ending);
    this.#end = null;
  }
}

export function lost(reason: string): Ending {
  return { code: LOST, reason };
}

function frameOf(data: unknown): ServerFrame | null {
  if (typeof data !== 'string') return null;
  try {
    const value: unknown = JSON.parse(data);
    // Trusts the server to send the declared frames; only checks that the value is a frame.
    return typeof value === 'object' && value !== null && 'frame' in value ? (value as ServerFrame) : null;
  } catch {
    return null;
  }
}
