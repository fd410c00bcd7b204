import type { ResolvedEvent } from '@eventstore/db-client';
import { sequenceOf, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import { Fault, outcomeUnknown, storeUnavailable, StreamGone } from '#libs/kernel/faults.ts';
import { withinMemory } from '#libs/platform/config/index.ts';
import { within } from '#libs/platform/lifecycle/index.ts';
import { appendError, isConflict, isIndefinite, isMissingStream, readFault } from './client-errors.ts';
import type { EventStoreConnection } from './connection.ts';
import { EventPull, toStoredEvent } from './event-pull.ts';
import { takeJson } from './json-bytes.ts';
import type { ProposedEvent } from './client/append-request.ts';
import type { AppendResult, EventStore, EventToAppend, ReadStreamOptions, StoredEvent } from './event-store.ts';

const FIRST = streamRevision(0);
const APPEND_DEADLINE_MS = 2000;
/** The server compares deadlines with its own clock: every append fails where the clocks differ by more than this. */
const CLOCK_TOLERANCE_MS = 3000;
/** For each next event of a read. */
const READ_DEADLINE_MS = 3000;
/** Events that a read buffers. */
const READ_AHEAD = withinMemory(256);
/** Total size of unanswered appends; further ones are refused. */
const MAX_UNANSWERED_BYTES = 64 * 1024 * 1024;

/** How long a failed append makes `ping` fail: without further appends nothing shows that the server has recovered. */
const REMEMBER_FAILURE_MS = 30_000;

/**
 * {@link EventStore} on EventStoreDB, through its official client. Reads require the leader, because a follower may lack
 * the newest acknowledged events. A follower that refuses a read names the leader, to which the client then connects.
 */
export class EventStoreDbStore implements EventStore {
  readonly #connection: EventStoreConnection;
  #unansweredBytes = 0;
  /** When the server last answered that an append failed; null after one that succeeded. */
  #appendFailedAtMs: number | null = null;

  constructor(connection: EventStoreConnection) {
    this.#connection = connection;
  }

  async append(
    stream: string,
    expectedRevision: StreamRevision,
    events: readonly EventToAppend[],
    { deadlineMs = APPEND_DEADLINE_MS }: { readonly deadlineMs?: number } = {},
  ): Promise<AppendResult> {
    if (events.length === 0) throw new TypeError(`nothing to append to ${stream}`);
    // 1. Serialise before anything is sent: this may fail.
    const proposed = events.map(toProposed);
    const bytes = proposed.reduce((sum, event) => sum + sizeOf(event), 0);
    if (this.#unansweredBytes + bytes > MAX_UNANSWERED_BYTES) {
      throw new Fault('overloaded', 'Too many appends wait for the event store', { retryAfterSeconds: 1 });
    }
    this.#unansweredBytes += bytes;
    try {
      // 2. Nothing is sent until the server is known to support batch appends.
      const started = performance.now();
      await within(deadlineMs, this.#connection.ready(), () => storeUnavailable('event store')).catch(
        (error: unknown) => {
          throw readFault(error);
        },
      );
      // 3. From here on, the server may have written the events despite an error.
      const remainingMs = Math.max(1, Math.ceil(deadlineMs - (performance.now() - started)));
      const appended = this.#connection.appends.append({
        stream,
        expectedRevision,
        deadlineMs: Date.now() + remainingMs + CLOCK_TOLERANCE_MS,
        events: proposed,
      });
      const result = await within(remainingMs, appended, () => outcomeUnknown());
      this.#appendFailedAtMs = null;
      return result;
    } catch (error) {
      if (isConflict(error)) return { kind: 'conflict' };
      if (isIndefinite(error)) this.#appendFailedAtMs = performance.now();
      throw appendError(error);
    } finally {
      this.#unansweredBytes -= bytes;
    }
  }

  async *readStream(stream: string, options: ReadStreamOptions = {}): AsyncGenerator<StoredEvent, void, undefined> {
    const { from, direction = 'forwards', limit = Number.MAX_SAFE_INTEGER, signal } = options;
    const deadlineMs = options.deadlineMs ?? READ_DEADLINE_MS;
    if (limit <= 0) return;
    signal?.throwIfAborted();
    const isForwards = direction === 'forwards';
    const { needs = isForwards ? (from ?? FIRST) : 'nothing' } = options;
    const start = isForwards ? 'start' : 'end';
    const read = this.#connection.client.readStream(
      stream,
      { direction, maxCount: limit, fromRevision: from === undefined ? start : BigInt(from), requiresLeader: true },
      { highWaterMark: READ_AHEAD },
    );
    const pull = new EventPull<ResolvedEvent>(read, () => read.cancel(), signal);
    let received = 0;
    try {
      while (!pull.ended) {
        for (const resolved of pull.take(READ_AHEAD)) {
          received += 1;
          if (received === 1) refuseTruncated(resolved, needs);
          const event = toStoredEvent(resolved, this.#connection.foreign);
          if (event) yield event;
        }
        signal?.throwIfAborted();
        if (!(await pull.wait(deadlineMs))) throw storeUnavailable('event store');
        signal?.throwIfAborted();
      }
    } catch (error) {
      if (signal?.aborted === true) throw signal.reason;
      if (!isMissingStream(error)) throw readFault(error);
      if (needs !== 'nothing' && needs > FIRST) throw new StreamGone(null, error);
    } finally {
      pull.close(received === limit);
    }
  }

  async ping(): Promise<void> {
    await this.#connection.ping();
    if (this.#appendFailedAtMs === null || performance.now() - this.#appendFailedAtMs > REMEMBER_FAILURE_MS) return;
    throw new Fault('store_unavailable', 'The event store answers, but appends fail', { retryAfterSeconds: 2 });
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }
}

/** @throws StreamGone */
function refuseTruncated({ event, link }: ResolvedEvent, needs: StreamRevision | 'nothing'): void {
  const first = (link ?? event)?.revision;
  if (first === undefined || needs === 'nothing' || first <= BigInt(needs)) return;
  throw new StreamGone(sequenceOf(streamRevision(Number(first))));
}

function toProposed({ id, type, data, metadata }: EventToAppend): ProposedEvent {
  return { id, type, data: takeJson(data), metadata: takeJson(metadata) };
}

function sizeOf({ type, data, metadata }: ProposedEvent): number {
  return Buffer.byteLength(data) + Buffer.byteLength(metadata) + 2 * type.length;
}
