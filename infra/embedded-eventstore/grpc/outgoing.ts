// The sending side of a streaming call, with back-pressure: whoever produces
// waits while the client does not read, and stops when the client is gone.
import type { Writable } from 'node:stream';
import { toCallError } from './errors.ts';

/** What both kinds of streaming calls of the gRPC library have. */
export type StreamingCall = Writable & { cancelled: boolean };

export class Outgoing {
  /** Aborted when the call is over, for whatever reason. */
  readonly closed: AbortSignal;
  #call: StreamingCall;
  #controller = new AbortController();
  #room: Promise<void> | null = null;

  constructor(call: StreamingCall) {
    this.#call = call;
    this.closed = this.#controller.signal;
    const close = () => this.#controller.abort();
    call.once('cancelled', close);
    call.once('close', close);
    call.once('finish', close);
    if (call.cancelled) close();
  }

  get isClosed(): boolean {
    return this.closed.aborted;
  }

  /** Queues a message. False: await `ready()` before the next one. */
  write(message: Buffer): boolean {
    return this.isClosed || this.#call.write(message);
  }

  /** Resolves when there is room again, or the call is over. */
  ready(): Promise<void> {
    if (this.isClosed || !this.#call.writableNeedDrain) return Promise.resolve();
    // One for all who wait: each listener of its own would be reported as a leak.
    this.#room ??= new Promise((resolve) => {
      const done = () => {
        this.#room = null;
        this.#call.off('drain', done);
        this.closed.removeEventListener('abort', done);
        resolve();
      };
      this.#call.once('drain', done);
      this.closed.addEventListener('abort', done);
    });
    return this.#room;
  }

  end(): void {
    if (!this.isClosed) this.#call.end();
  }

  /** Ends the call with an error; what was written before still goes out. */
  fail(error: unknown): void {
    if (this.isClosed) return;
    this.#call.emit('error', toCallError(error).toStatus());
    this.#controller.abort();
  }
}

/** Calls under way, so that a stopping server can end them. */
export class OpenCalls {
  #calls = new Set<Outgoing>();

  add(call: Outgoing): void {
    this.#calls.add(call);
    call.closed.addEventListener('abort', () => this.#calls.delete(call));
    if (call.isClosed) this.#calls.delete(call);
  }

  failAll(error: unknown): void {
    for (const call of this.#calls) call.fail(error);
  }
}
