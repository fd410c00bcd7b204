import { sequenceOf, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import { outcomeUnknown, storeUnavailable, StreamGone } from '#libs/kernel/faults.ts';
import { within } from '#libs/platform/lifecycle/index.ts';
import { AppendLimits, type ProposedEvent } from './append-limits.ts';
import type { ResolvedEvent } from './client/read-responses.ts';
import { appendError, isConflict, isIndefinite, isMissingStream, readFault } from './client-errors.ts';
import type { EventStoreConnection } from './connection.ts';
import { toStoredEvent } from './event-pull.ts';
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
/** The server compares deadlines with its own clock: every append fails where the clocks differ by more than this. */
const CLOCK_TOLERANCE_MS = 3000;

/**
 * {@link EventStore} on EventStoreDB, through its official client. Reads require the leader, because a follower may lack
 * the newest acknowledged events. A follower that refuses a read names the leader, to which the client then connects.
 */
export class EventStoreDbStore implements EventStore {
  readonly #connection: EventStoreConnection;
  readonly #limits = new AppendLimits();

  constructor(connection: EventStoreConnection) {
    this.#connection = connection;
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
    expectedRevision: StreamRevision,
    events: readonly ProposedEvent[],
    deadlineMs: number,
  ): Promise<AppendResult> {
    try {
      // 1. Nothing is sent until the server is known to support batch appends.
      const started = performance.now();
      await within(deadlineMs, this.#connection.ready(), () => storeUnavailable('the event store')).catch(
        (error: unknown) => {
          throw readFault(error);
        },
      );
      // 2. From here on, the server may have written the events despite an error.
      const remainingMs = Math.max(1, Math.ceil(deadlineMs - (performance.now() - started)));
      const appended = this.#connection.appends.append({
        stream,
        expectedRevision,
        deadlineMs: Date.now() + remainingMs + CLOCK_TOLERANCE_MS,
        events,
      });
      const result = await within(remainingMs, appended, () => outcomeUnknown());
      this.#limits.succeeded();
      return result;
    } catch (error) {
      if (isConflict(error)) return { kind: 'conflict' };
      if (isIndefinite(error)) this.#limits.failed();
      throw appendError(error);
    }
  }

  async *readStream(stream: string, options: ReadStreamOptions = {}): AsyncGenerator<StoredEvent, void, undefined> {
    const { from, direction = 'forwards', limit = Number.MAX_SAFE_INTEGER, signal } = options;
    const deadlineMs = options.deadlineMs ?? READ_DEADLINE_MS;
    if (limit <= 0) return;
    signal?.throwIfAborted();
    const isForwards = direction === 'forwards';
    const { needs = isForwards ? (from ?? FIRST) : 'nothing' } = options;
    const request = { stream, direction, from: from ?? (isForwards ? 'start' : 'end'), wanted: limit } as const;
    let isFirst = true;
    let isMissing = false;
    try {
      for await (const items of this.#connection.read(request, { deadlineMs, signal })) {
        for (const item of items) {
          isMissing ||= item.kind === 'missing-stream';
          if (item.kind !== 'event') continue;
          if (isFirst) refuseTruncated(item, needs);
          isFirst = false;
          const event = toStoredEvent(item, this.#connection.foreign);
          if (event) yield event;
        }
      }
    } catch (error) {
      if (!isMissingStream(error)) throw error;
      isMissing = true;
    }
    if (isMissing && needs !== 'nothing' && needs > FIRST) throw new StreamGone(null);
  }

  async ping(): Promise<void> {
    await this.#connection.ping();
    this.#limits.refuseAfterFailure();
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}

/** @throws StreamGone */
function refuseTruncated({ event, link }: ResolvedEvent, needs: StreamRevision | 'nothing'): void {
  const first = (link ?? event)?.revision;
  if (first === undefined || needs === 'nothing' || first <= needs) return;
  throw new StreamGone(sequenceOf(streamRevision(first)));
}
