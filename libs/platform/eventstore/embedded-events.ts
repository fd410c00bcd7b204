import type { EmbeddedEvent, EmbeddedLog } from '#libs/platform/embedded-log/index.ts';
import { streamRevision, type GlobalPosition } from '#libs/kernel/event.ts';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';
import { withinMemory } from '#libs/platform/config/index.ts';
import { joinedCall, unlessAborted, within } from '#libs/platform/lifecycle/index.ts';
import type { ProposedEvent } from './append-limits.ts';
import { type ForeignEvents, withoutForeignContent } from './event-metadata.ts';
import { type EventToAppend, READ_DEADLINE_MS, type StoredEvent } from './event-store.ts';

/** Content of the events that are kept. In memory, they take a few times as much. */
const MAX_KEPT_BYTES = withinMemory(4 * 1024 * 1024);
const BYTES_PER_EVENT = 500;
/** Other consumers are about to read an event that is as near to the end. */
const RECENT = 256;
/** The greatest revision of a real event; that of a stream's tombstone is greater. */
const MAX_REVISION = Number.MAX_SAFE_INTEGER;

export interface LogEvent {
  readonly position: number;
  /** Null for what has no place in a stream: a tombstone. */
  readonly event: StoredEvent | null;
  readonly bytes: number;
}

/**
 * The events of the embedded log for all consumers of this process: feeds and consumer groups. Each new event is decoded
 * once. An event that this process has appended is not decoded at all: consumers get the objects of the command. So
 * nothing may change an event.
 *
 * Positions of the embedded event store are consecutive. A consumer that reads on from a position therefore misses nothing,
 * whether it finds the events here or they are read from the log.
 */
export class EmbeddedEvents {
  readonly log: EmbeddedLog;
  readonly #foreign: ForeignEvents;
  /** The newest events, by position; dropped in the order in which they came. */
  readonly #kept = new Map<number, LogEvent>();
  #keptBytes = 0;
  /** Reads of pages, by their first position. */
  readonly #reading = new Map<number, Promise<readonly LogEvent[]>>();
  readonly #close = new AbortController();
  /** Aborts at `close`. */
  readonly closed: AbortSignal = this.#close.signal;

  constructor(log: EmbeddedLog, foreign: ForeignEvents) {
    this.log = log;
    this.#foreign = foreign;
  }

  /** Errors of later calls: `Fault` `stopping`. */
  close(): void {
    this.#close.abort(closedFault());
  }

  /** @throws `Fault` */
  requireOpen(): void {
    this.closed.throwIfAborted();
    if (!this.log.isOpen) throw storeUnavailable('the event store');
  }

  /** See `EmbeddedLog.isEnd`. @throws `Fault` */
  isEnd(stream: string, from: number): boolean {
    this.requireOpen();
    return this.log.isEnd(stream, from);
  }

  /** The answer to a read. @throws `Fault`; the reason of the signal */
  async answer<T>(read: () => Promise<T>, deadlineMs = READ_DEADLINE_MS, signal?: AbortSignal): Promise<T> {
    this.requireOpen();
    const unavailable = (cause?: unknown): Fault => storeUnavailable('the event store', cause);
    const failing = read().catch((error: unknown) => {
      throw unavailable(error);
    });
    const answered = within(deadlineMs, failing, unavailable);
    return signal === undefined ? answered : unlessAborted(answered, signal);
  }

  /** Position of the last event of the log; 0 while it is empty. @throws `Fault` */
  async head(): Promise<number> {
    const page = await this.answer(() => this.log.readAll('end', 'backwards', 1));
    return page.events[0]?.position ?? 0;
  }

  /** Resolves when the log has events after `position`, or the signal has aborted. @throws `Fault` */
  async grownBeyond(position: number, signal: AbortSignal): Promise<void> {
    this.requireOpen();
    if (signal.aborted || this.log.end > position) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const onChange = (): void => {
      if (this.log.end > position || !this.log.isOpen) resolve();
    };
    const stopListening = this.log.onChange(onChange);
    const aborts = [signal, this.closed];
    const onAbort = (): void => resolve();
    for (const each of aborts) each.addEventListener('abort', onAbort, { once: true });
    await promise;
    for (const each of aborts) each.removeEventListener('abort', onAbort);
    stopListening();
    this.requireOpen();
  }

  /**
   * Up to `max` events from `position` on, at most up to the end of the log that this process knows: empty beyond it.
   *
   * @throws `Fault`
   */
  async from(position: number, max: number): Promise<readonly LogEvent[]> {
    this.requireOpen();
    const run: LogEvent[] = [];
    for (let at = position; at <= this.log.end && run.length < max; at++) {
      const kept = this.#kept.get(at);
      if (kept === undefined) break;
      run.push(kept);
    }
    if (run.length > 0 || position > this.log.end) return run;
    const read = await joinedCall(this.#reading, position, () => this.#read(position, max));
    return read.slice(0, max);
  }

  /** The events at these positions, in this order, which the store has delivered. @throws `Fault` */
  async at(positions: readonly number[]): Promise<readonly LogEvent[]> {
    const missing = positions.filter((position) => !this.#kept.has(position));
    const found = new Map(positions.map((position) => [position, this.#kept.get(position)]));
    if (missing.length > 0) {
      for (const event of await this.answer(() => this.log.readPositions(missing))) {
        const decoded = this.#decoded(event);
        found.set(event.position, decoded);
        if (event.position > this.log.end - RECENT) this.#keep(decoded);
      }
    }
    return [...found.values()].filter((event) => event !== undefined);
  }

  async #read(position: number, limit: number): Promise<readonly LogEvent[]> {
    const page = await this.answer(() => this.log.readAll(position, 'forwards', limit));
    const events = page.events.map((event) => this.#decoded(event));
    // Other consumers are about to read the end of the log; old events are of use to none of them.
    if (page.next === undefined) for (const event of events) this.#keep(event);
    return events;
  }

  #decoded(event: EmbeddedEvent): LogEvent {
    const bytes = event.data.length + event.metadata.length;
    return { position: event.position, event: this.decode(event), bytes };
  }

  /** Keeps the events of an append that was written; of a repetition, the store has those of the first one. */
  keepAppended(
    stream: string,
    events: readonly EventToAppend[],
    proposed: readonly ProposedEvent[],
    last: { readonly revision: number; readonly position: number; readonly createdMs: number | null },
  ): void {
    const { createdMs } = last;
    if (createdMs === null) return;
    for (const [index, { id, type, data, metadata }] of events.entries()) {
      const before = events.length - 1 - index;
      const position = last.position - before;
      const revision = streamRevision(last.revision - before);
      const event = { stream, revision, position: positionOf(position), id, type, data, metadata, createdMs };
      this.#keep({ position, event, bytes: proposed[index]?.data.length ?? 0 });
    }
  }

  #keep(event: LogEvent): void {
    if (this.#kept.has(event.position)) return;
    this.#kept.set(event.position, event);
    this.#keptBytes += event.bytes + BYTES_PER_EVENT;
    for (const [position, { bytes }] of this.#kept) {
      if (this.#keptBytes <= MAX_KEPT_BYTES) break;
      this.#kept.delete(position);
      this.#keptBytes -= bytes + BYTES_PER_EVENT;
    }
  }

  /** As the official client decodes events: content of another type than JSON stays bytes. */
  decode(event: EmbeddedEvent): StoredEvent | null {
    const { id, stream, type, contentType, createdMs, data, metadata } = event;
    if (event.revision > MAX_REVISION) return null;
    const stored = withoutForeignContent({
      stream,
      revision: streamRevision(event.revision),
      position: positionOf(event.position),
      id,
      type,
      data: contentType === 'application/json' ? jsonIn(data, String) : data,
      metadata: metadata.length === 0 ? undefined : jsonIn(metadata, () => metadata),
      createdMs,
    });
    if (stored.foreign !== undefined) this.#foreign.note(stored, type);
    return stored;
  }
}

function closedFault(): Fault {
  return new Fault('stopping', 'The event store connection is closed');
}

export function positionOf(position: number): GlobalPosition {
  const offset = BigInt(position);
  return { commit: offset, prepare: offset };
}

export function jsonIn(bytes: Buffer, otherwise: (bytes: Buffer) => unknown): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return otherwise(bytes);
  }
}
