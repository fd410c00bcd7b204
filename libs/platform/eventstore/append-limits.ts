import { Fault } from '#libs/kernel/faults.ts';
import type { EventToAppend } from './event-store.ts';
import { takeJson } from './json-bytes.ts';

/** An event whose data and metadata are serialised. */
export interface ProposedEvent {
  readonly id: string;
  readonly type: string;
  /** JSON, as is `metadata`. */
  readonly data: string;
  readonly metadata: string;
}

/** Total size of unanswered appends; further ones are refused. */
const MAX_UNANSWERED_BYTES = 64 * 1024 * 1024;
/** How long a failed append makes `ping` fail: without further appends nothing shows that the server has recovered. */
const REMEMBER_FAILURE_MS = 30_000;

/** Bounds the memory of unanswered appends, and remembers that the server could not write. */
export class AppendLimits {
  #unansweredBytes = 0;
  /** When the server last answered that an append failed; null after one that succeeded. */
  #failedAtMs: number | null = null;

  /** Serialises the events before `send` sends anything: that may fail. @throws TypeError without events; `Fault` `overloaded` */
  async within<T>(events: readonly EventToAppend[], send: (proposed: ProposedEvent[]) => Promise<T>): Promise<T> {
    if (events.length === 0) throw new TypeError('nothing to append');
    const proposed = toProposed(events);
    const bytes = proposed.reduce((sum, event) => sum + sizeOf(event), 0);
    if (this.#unansweredBytes + bytes > MAX_UNANSWERED_BYTES) {
      throw new Fault('overloaded', 'Too many appends wait for the event store', { retryAfterSeconds: 1 });
    }
    this.#unansweredBytes += bytes;
    try {
      return await send(proposed);
    } finally {
      this.#unansweredBytes -= bytes;
    }
  }

  succeeded(): void {
    this.#failedAtMs = null;
  }

  /** The server answered that it could not write. */
  failed(): void {
    this.#failedAtMs = performance.now();
  }

  /** @throws `Fault` `store_unavailable` for a while after a failure, unless an append has succeeded since */
  refuseAfterFailure(): void {
    if (this.#failedAtMs === null || performance.now() - this.#failedAtMs > REMEMBER_FAILURE_MS) return;
    throw new Fault('store_unavailable', 'The event store answers, but appends fail', { retryAfterSeconds: 2 });
  }
}

/** The events of one command share their metadata, and its text. */
function toProposed(events: readonly EventToAppend[]): ProposedEvent[] {
  let before: ProposedEvent | undefined;
  return events.map(({ id, type, data, metadata }, index) => {
    const shared = metadata === events[index - 1]?.metadata ? before?.metadata : undefined;
    before = { id, type, data: takeJson(data), metadata: shared ?? takeJson(metadata) };
    return before;
  });
}

function sizeOf({ type, data, metadata }: ProposedEvent): number {
  return Buffer.byteLength(data) + Buffer.byteLength(metadata) + 2 * type.length;
}
