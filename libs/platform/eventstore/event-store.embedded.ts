import { sequenceOf, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import { outcomeUnknown, storeUnavailable, StreamGone } from '#libs/kernel/faults.ts';
import { withinMemory } from '#libs/platform/config/index.ts';
import { within } from '#libs/platform/lifecycle/index.ts';
import { AppendLimits, type ProposedEvent } from './append-limits.ts';
import { type EmbeddedEvents, positionOf } from './embedded-events.ts';
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
  readonly #events: EmbeddedEvents;
  readonly #limits = new AppendLimits();

  constructor(events: EmbeddedEvents) {
    this.#events = events;
  }

  append(
    stream: string,
    expectedRevision: StreamRevision,
    events: readonly EventToAppend[],
    { deadlineMs = APPEND_DEADLINE_MS }: { readonly deadlineMs?: number } = {},
  ): Promise<AppendResult> {
    return this.#limits.within(events, async (proposed) =>
      this.#append(stream, expectedRevision, { events, proposed }, deadlineMs),
    );
  }

  async #append(
    stream: string,
    expected: StreamRevision,
    { events, proposed }: { readonly events: readonly EventToAppend[]; readonly proposed: readonly ProposedEvent[] },
    deadlineMs: number,
  ): Promise<AppendResult> {
    this.#events.requireOpen();
    const fields = proposed.map(({ id, type, data, metadata }) => [id, type, data, metadata] as const);
    const appended = this.#events.log.append(stream, expected, Date.now() + deadlineMs, fields).then(
      (result) => {
        // Also if the caller has stopped waiting.
        if (result.kind === 'written') this.#events.keepAppended(stream, events, proposed, result);
        return result;
      },
      (error: unknown) => {
        throw outcomeUnknown(error);
      },
    );
    const outcome = await within(deadlineMs, appended, () => outcomeUnknown());
    switch (outcome.kind) {
      case 'written':
        this.#limits.succeeded();
        return {
          kind: 'appended',
          revision: streamRevision(outcome.revision),
          position: positionOf(outcome.position),
          ...(outcome.createdMs !== null && { createdMs: outcome.createdMs }),
        };
      case 'wrong-revision':
        return { kind: 'conflict' };
      case 'stream-deleted':
        throw new StreamGone(null);
      case 'too-large':
        throw new RangeError(`the append is larger than the event store accepts (${outcome.maxBytes} bytes)`);
      case 'deadline-passed':
        throw storeUnavailable('the event store', new Error('the append came too late'));
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
      this.#events.answer(
        () => this.#events.log.readStream(stream, at, direction, Math.min(PAGE, count)),
        deadlineMs,
        signal,
      );
    let next: number | 'end' | undefined = from ?? (isForwards ? 0 : 'end');
    let left = limit;
    let isFirst = true;
    while (next !== undefined && left > 0) {
      if (isForwards && next !== 'end' && this.#events.isEnd(stream, next)) return;
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
        const stored = this.#events.decode(event);
        if (stored !== null) yield stored;
        signal?.throwIfAborted();
      }
    }
  }

  async ping(): Promise<void> {
    await this.#events.head();
    this.#limits.refuseAfterFailure();
  }

  async close(): Promise<void> {
    this.#events.close();
  }
}
