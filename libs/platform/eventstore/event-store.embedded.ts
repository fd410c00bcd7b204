import { sequenceOf, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import { Fault, outcomeUnknown, storeUnavailable, StreamGone } from '#libs/kernel/faults.ts';
import { withinMemory } from '#libs/platform/config/index.ts';
import { unlessAborted, within } from '#libs/platform/lifecycle/index.ts';
import { AppendLimits, type ProposedEvent } from './append-limits.ts';
import type { EmbeddedEvent, EmbeddedLog } from './embedded-log.ts';
import { type ForeignEvents, withoutForeignContent } from './event-metadata.ts';
import {
  APPEND_DEADLINE_MS,
  READ_DEADLINE_MS,
  type AppendResult,
  type EventStore,
  type EventToAppend,
  type ReadStreamOptions,
  type StoredEvent,
} from './event-store.ts';

const FIRST = streamRevision(0);
/** Events of a page. */
const PAGE = withinMemory(256);

/** {@link EventStore} on the embedded event store of this process, without gRPC. */
export class EmbeddedEventStore implements EventStore {
  readonly #log: EmbeddedLog;
  readonly #foreign: ForeignEvents;
  readonly #limits = new AppendLimits();
  #isClosed = false;

  constructor(log: EmbeddedLog, foreign: ForeignEvents) {
    this.#log = log;
    this.#foreign = foreign;
  }

  append(
    stream: string,
    expectedRevision: StreamRevision,
    events: readonly EventToAppend[],
    { deadlineMs = APPEND_DEADLINE_MS }: { readonly deadlineMs?: number } = {},
  ): Promise<AppendResult> {
    return this.#limits.within(events, (proposed) => this.#append(stream, expectedRevision, proposed, deadlineMs));
  }

  async #append(
    stream: string,
    expected: StreamRevision,
    proposed: readonly ProposedEvent[],
    deadlineMs: number,
  ): Promise<AppendResult> {
    this.#requireOpen();
    const events = proposed.map(({ id, type, data, metadata }) => [id, type, data, metadata] as const);
    const appended = this.#log.append(stream, expected, Date.now() + deadlineMs, events).catch((error: unknown) => {
      throw outcomeUnknown(error);
    });
    const outcome = await within(deadlineMs, appended, () => outcomeUnknown());
    switch (outcome.kind) {
      case 'written':
        this.#limits.succeeded();
        return {
          kind: 'appended',
          revision: streamRevision(outcome.revision),
          position: positionOf(outcome.position),
        };
      case 'wrong-revision':
        return { kind: 'conflict' };
      case 'stream-deleted':
        throw new StreamGone(null);
      case 'too-large':
        throw new RangeError(`the append is larger than the event store accepts (${outcome.maxBytes} bytes)`);
      case 'deadline-passed':
        throw storeUnavailable('event store', new Error('the append came too late'));
      case 'failed':
        this.#limits.failed();
        throw outcomeUnknown(
          new Error(outcome.reason),
          'The event store reported a failed write, which may still have been stored',
        );
    }
  }

  async *readStream(stream: string, options: ReadStreamOptions = {}): AsyncGenerator<StoredEvent, void, undefined> {
    const { from, direction = 'forwards', limit = Number.MAX_SAFE_INTEGER, signal } = options;
    const { deadlineMs = READ_DEADLINE_MS } = options;
    if (limit <= 0) return;
    signal?.throwIfAborted();
    const isForwards = direction === 'forwards';
    const { needs = isForwards ? (from ?? FIRST) : 'nothing' } = options;
    const read = (at: number | 'end', count: number) =>
      this.#answer(this.#log.readStream(stream, at, direction, Math.min(PAGE, count)), deadlineMs, signal);
    let next: number | 'end' | undefined = from ?? (isForwards ? 0 : 'end');
    let left = limit;
    let isFirst = true;
    while (next !== undefined && left > 0) {
      this.#requireOpen();
      const page = await read(next, left);
      if (page.status !== 'exists') {
        if (needs !== 'nothing' && needs > FIRST) throw new StreamGone(null);
        return;
      }
      next = page.next;
      left -= page.events.length;
      for (const event of page.events) {
        if (isFirst && needs !== 'nothing' && event.revision > needs)
          throw new StreamGone(sequenceOf(streamRevision(event.revision)));
        isFirst = false;
        yield storedEvent(event, this.#foreign);
        signal?.throwIfAborted();
      }
    }
  }

  async ping(): Promise<void> {
    this.#requireOpen();
    await this.#answer(this.#log.readStream('$ping', 0, 'forwards', 1), READ_DEADLINE_MS);
    this.#limits.refuseAfterFailure();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new Fault('stopping', 'The event store connection is closed');
    if (!this.#log.isOpen) throw storeUnavailable('event store');
  }

  async #answer<T>(read: Promise<T>, deadlineMs: number, signal?: AbortSignal): Promise<T> {
    const answered = within(
      deadlineMs,
      read.catch((error: unknown) => {
        throw storeUnavailable('event store', error);
      }),
      () => storeUnavailable('event store'),
    );
    return signal === undefined ? answered : unlessAborted(answered, signal);
  }
}

function positionOf(position: number) {
  const offset = BigInt(position);
  return { commit: offset, prepare: offset };
}

/** As the official client decodes events: content of another type than JSON stays bytes. */
function storedEvent(event: EmbeddedEvent, foreign: ForeignEvents): StoredEvent {
  const { id, stream, type, contentType, createdMs, data, metadata } = event;
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
  if (stored.foreign !== undefined) foreign.note(stored, type);
  return stored;
}

function jsonIn(bytes: Buffer, otherwise: (bytes: Buffer) => unknown): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    return otherwise(bytes);
  }
}
