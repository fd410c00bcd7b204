/** One websocket, from its first byte to its end: reads frames, and notices when nothing comes any more. */
import { CLOSE } from './close-codes.ts';
import type { ClientFrame, ServerFrame } from './frames.ts';
import type { WebSocketLike } from './websocket.ts';

export interface Ending {
  readonly code: number;
  readonly reason: string;
}

/** From the beginning of the handshake to `hello`. */
const HELLO_WITHIN_MS = 15_000;
/** After a silence as long as the server's own heartbeat, we ask; then it is given this long. */
const ANSWER_WITHIN_MS = 10_000;

/** What a websocket that ended without a close frame reports, too. */
const LOST = 1006;

export class Connection {
  /** Resolves once, when the connection is over, however it came to that. */
  readonly ended: Promise<Ending>;
  readonly #socket: WebSocketLike;
  #end: ((ending: Ending) => void) | null = null;
  #timer: ReturnType<typeof setTimeout>;
  #heard = false;

  /** @param onFrame is told each frame, with the length of its text */
  constructor(socket: WebSocketLike, onFrame: (frame: ServerFrame, size: number) => void) {
    this.#socket = socket;
    this.ended = new Promise((resolve) => (this.#end = resolve));
    this.#timer = setTimeout(() => this.leave(CLOSE.noPong, 'no hello'), HELLO_WITHIN_MS);
    socket.addEventListener('message', ({ data }) => {
      if (this.#end === null) return;
      this.#heard = true;
      const frame = frameOf(data);
      if (frame === null) this.leave(CLOSE.outOfStep, 'a message is no frame');
      else onFrame(frame, String(data).length);
    });
    socket.addEventListener('close', ({ code, reason }) => this.#over({ code, reason }));
    // Says nothing that `close`, which follows, does not say; but `ws` throws what nobody listens to.
    socket.addEventListener('error', () => undefined);
  }

  /** From `hello` on: the server is to be heard of at least this often. */
  expectHeartbeat(everyMs: number): void {
    clearTimeout(this.#timer);
    this.#heard = false;
    this.#timer = setTimeout(() => {
      if (this.#heard) this.expectHeartbeat(everyMs);
      else this.#ask(everyMs);
    }, everyMs);
  }

  /** Nothing happens when the connection is over: its end is told by `ended`. */
  send(frame: ClientFrame): void {
    if (this.#end !== null) this.#socket.send(JSON.stringify(frame));
  }

  /** Ends the connection for us at once: a dead network would let the closing handshake wait. */
  leave(code: number, reason: string): void {
    if (this.#end === null) return;
    this.#over({ code, reason });
    try {
      this.#socket.close(code, reason.slice(0, 100));
    } catch {
      // It was still connecting, or is closed already.
    }
  }

  #ask(everyMs: number): void {
    this.send({ frame: 'ping' });
    this.#timer = setTimeout(() => {
      if (this.#heard) this.expectHeartbeat(everyMs);
      else this.leave(CLOSE.noPong, 'no pong');
    }, ANSWER_WITHIN_MS);
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
    // The server is believed to send what it declares; that it is a frame at all is checked.
    return typeof value === 'object' && value !== null && 'frame' in value ? (value as ServerFrame) : null;
  } catch {
    return null;
  }
}
