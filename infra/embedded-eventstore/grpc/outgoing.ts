// The sending side of a streaming call, with back-pressure: a producer waits
// while the client does not read, and stops when the call is over.
import { status } from '@grpc/grpc-js';
import type { Writable } from 'node:stream';
import { CallError, toCallError } from './errors.ts';

/** The common part of both kinds of streaming calls of the gRPC library. */
export type StreamingCall = Writable & { cancelled: boolean };

/** A reason without a stack trace: each call ends with one. */
const CALL_IS_OVER = 'the call is over';

export class Outgoing {
  /** Aborted when the call is over, for any reason. */
  readonly closed: AbortSignal;
  #call: StreamingCall;
  #controller = new AbortController();
  #room: Promise<void> | null = null;

  constructor(call: StreamingCall) {
    this.#call = call;
    this.closed = this.#controller.signal;
    const close = () => this.#controller.abort(CALL_IS_OVER);
    for (const event of ['cancelled', 'close', 'finish']) call.once(event, close);
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
    // All waiting callers share one promise: Node reports many listeners on one stream as a leak.
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

  /** Ends the call with an error, after the messages that are already queued. */
  fail(error: unknown): void {
    if (this.isClosed) return;
    this.#call.emit('error', toCallError(error).toStatus());
    this.#controller.abort(CALL_IS_OVER);
  }
}

/** Streaming calls under way, so that a stopping server can end them. */
export class OpenCalls {
  #calls = new Set<Outgoing>();

  open(call: StreamingCall): Outgoing {
    const out = new Outgoing(call);
    if (out.isClosed) return out;
    this.#calls.add(out);
    out.closed.addEventListener('abort', () => this.#calls.delete(out));
    return out;
  }

  stop(): void {
    const stopping = new CallError(status.CANCELLED, 'The event store is stopping.');
    for (const call of this.#calls) call.fail(stopping);
  }
}
