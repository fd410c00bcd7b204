import type { AllStreamResolvedEvent, ResolvedEvent } from '@eventstore/db-client';
import { streamRevision } from '#libs/kernel/event.ts';
import { withoutForeignContent, type ForeignEvents } from './event-metadata.ts';
import type { StoredEvent } from './event-store.ts';

/** The used part of `node:stream`'s Readable, for which the client has older types. */
interface Source {
  readonly readableLength: number;
  read(): unknown;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  destroy(): unknown;
}

/** Takes the received events from a read or a subscription, many at a time, with the back-pressure of the stream. */
export class EventPull<T> {
  readonly #source: Source;
  readonly #cancel: () => Promise<unknown>;
  readonly #signal: AbortSignal | undefined;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;
  /** Events that `wait` has read from the stream; taken first. */
  readonly #buffer: T[] = [];
  /** The number of events that `wait` waits for. */
  #wanted = 0;

  /**
   * @param cancel ends the call at the server, which destroying the stream would leave open
   * @param signal ends a `wait` when it aborts
   */
  constructor(source: Source, cancel: () => Promise<unknown>, signal?: AbortSignal) {
    this.#source = source;
    this.#cancel = cancel;
    this.#signal = signal;
    signal?.addEventListener('abort', this.notify);
    source.on('readable', () => {
      if (this.#wake !== undefined && this.#fill()) this.#wake();
    });
    // The client may emit further errors, which would be uncaught without a listener.
    source.on('error', (error) => {
      this.#failure ??= { error };
      this.notify();
    });
    for (const event of ['end', 'close']) {
      source.on(event, () => {
        this.#ended = true;
        this.notify();
      });
    }
  }

  /** There are no received events to take. */
  get drained(): boolean {
    return this.#buffer.length === 0 && this.#source.readableLength === 0;
  }

  /** The stream has ended, and all events were taken. False if the stream failed: `take` throws its error. */
  get ended(): boolean {
    return this.#ended && this.#failure === undefined && this.drained;
  }

  /** Up to `max` received events. Errors: the error of the stream, once all events were taken. */
  take(max: number): T[] {
    const taken = this.#buffer.splice(0, max);
    while (taken.length < max) {
      const next = this.#source.read();
      if (next === null) break;
      taken.push(next as T);
    }
    if (taken.length === 0 && this.#failure) throw this.#failure.error;
    return taken;
  }

  /** Resolves true when `atLeast` events were received, or the stream ended, or on `notify`; false after `ms`. */
  async wait(ms: number, atLeast = 1): Promise<boolean> {
    this.#wanted = atLeast;
    if (this.#fill() || this.#ended || this.#failure) return true;
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

  /** Reads the wanted number of events, which also makes the stream fetch more. @returns whether it has read them all */
  #fill(): boolean {
    while (this.#buffer.length < this.#wanted) {
      const next = this.#source.read();
      if (next === null) return false;
      this.#buffer.push(next as T);
    }
    return true;
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
    if (isComplete || this.#ended) return;
    // After an error, the call has ended; the server also ends a read of a missing stream.
    if (!this.#failure) void this.#cancel().catch(() => undefined);
    this.#source.destroy();
  }
}

/** The greatest revision of a real event; that of a stream's tombstone is greater. */
const MAX_REVISION = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * Converts an event of the client to one of the port. Null for what has no place in a stream: tombstones.
 *
 * @param foreign notes the events that are not Parley's
 */
export function toStoredEvent(
  resolved: ResolvedEvent | AllStreamResolvedEvent,
  foreign: ForeignEvents,
): StoredEvent | null {
  // Without its event, a link that was to be resolved leads nowhere.
  const recorded = resolved.event ?? resolved.link;
  if (!recorded || recorded.revision > MAX_REVISION) return null;
  const event = withoutForeignContent({
    stream: recorded.streamId,
    revision: streamRevision(Number(recorded.revision)),
    position: recorded.position ?? null,
    id: recorded.id,
    type: recorded.type,
    data: recorded.data,
    metadata: recorded.metadata,
    createdMs: recorded.created.getTime(),
  });
  if (event.foreign !== undefined) foreign.note(event, recorded.type);
  return event;
}
