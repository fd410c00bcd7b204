import { convertToCommandError } from '@eventstore/db-client/dist/utils/CommandError.js';
import { streamRevision } from '#libs/kernel/event.ts';
import type { ResolvedEvent } from './client/read-responses.ts';
import { withoutForeignContent, type ForeignEvents } from './event-metadata.ts';
import type { StoredEvent } from './event-store.ts';

/** The used part of a call of the gRPC library. */
interface Call {
  on(event: string, listener: (...args: never[]) => void): unknown;
  pause(): unknown;
  resume(): unknown;
  cancel(): void;
}

/** Takes the received items of a call, many at a time, with the back-pressure of its stream. */
export class EventPull<T> {
  readonly #opening: Promise<Call>;
  readonly #readAhead: number;
  readonly #signal: AbortSignal | undefined;
  #call: Call | undefined;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;
  /** Received, and not taken. */
  readonly #buffer: T[] = [];
  /** The number of items that `wait` waits for. */
  #wanted = 1;

  /**
   * @param readAhead number of items after which the call waits until some are taken
   * @param signal ends a `wait` when it aborts
   */
  constructor(opening: Promise<Call>, readAhead: number, signal?: AbortSignal) {
    this.#opening = opening;
    this.#readAhead = readAhead;
    this.#signal = signal;
    signal?.addEventListener('abort', this.notify);
    opening.then(
      (call) => this.#receive(call),
      (error: unknown) => this.#fail(error),
    );
  }

  #receive(call: Call): void {
    this.#call = call;
    call.on('data', (item: T) => {
      this.#buffer.push(item);
      if (this.#buffer.length >= this.#readAhead) call.pause();
      if (this.#buffer.length >= this.#wanted) this.notify();
    });
    call.on('error', (error: Error) => this.#fail(convertToCommandError(error)));
    for (const event of ['end', 'close']) {
      call.on(event, () => {
        this.#ended = true;
        this.notify();
      });
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.notify();
  }

  /** There are no received items to take. */
  get drained(): boolean {
    return this.#buffer.length === 0;
  }

  /** The call has ended, and all items were taken. False if the call failed: `take` throws its error. */
  get ended(): boolean {
    return this.#ended && this.#failure === undefined && this.drained;
  }

  /** Up to `max` received items. Errors: the error of the call, once all items were taken. */
  take(max: number): T[] {
    const taken = this.#buffer.splice(0, max);
    if (taken.length === 0 && this.#failure) throw this.#failure.error;
    if (this.#buffer.length < this.#readAhead) this.#call?.resume();
    return taken;
  }

  /** Resolves true when `atLeast` items were received, or the call ended, or on `notify`; false after `ms`. */
  async wait(ms: number, atLeast = 1): Promise<boolean> {
    this.#wanted = atLeast;
    if (this.#buffer.length >= atLeast || this.#ended || this.#failure) return true;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#wake = undefined;
        resolve(false);
      }, ms);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve(true);
      };
    });
  }

  /** Ends a `wait`. */
  readonly notify = (): void => this.#wake?.();

  /**
   * Ends the call, unless the server ends it by itself: servers close a connection on which many calls are reset (HTTP/2
   * servers of Node at more than 33 a second), and with it all other calls.
   *
   * @param isComplete whether the server has sent all that was asked for
   */
  close(isComplete = false): void {
    this.#signal?.removeEventListener('abort', this.notify);
    // Its end is received only while the call is not paused.
    if (isComplete) this.#call?.resume();
    if (isComplete || this.#ended || this.#failure) return;
    // gRPC fails to cancel a call in the step in which it was made: grpc/grpc-node#1464.
    void this.#opening.then(
      (call) => setImmediate(() => call.cancel()),
      () => undefined,
    );
  }
}

/**
 * Converts an event of the server to one of the port. Null for what has no place in a stream: tombstones.
 *
 * @param foreign notes the events that are not Parley's
 */
export function toStoredEvent({ event, link }: ResolvedEvent, foreign: ForeignEvents): StoredEvent | null {
  const recorded = event ?? link;
  if (!recorded || recorded.revision > Number.MAX_SAFE_INTEGER) return null;
  const stored = withoutForeignContent({ ...recorded, revision: streamRevision(recorded.revision) });
  if (stored.foreign !== undefined) foreign.note(stored, recorded.type);
  return stored;
}
