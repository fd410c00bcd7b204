import { streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { type EventStore, type StoredEvent, textOf } from '#libs/platform/eventstore/index.ts';

import { SharedCalls } from '#libs/platform/lifecycle/index.ts';
import { indexUnavailable, type SearchThread, UnusableIndex } from '#libs/platform/textindex/index.ts';

import { GRAPH, graphCodec } from '../graph.ts';

import type { IndexedEvent } from './event-writer.ts';
import type { Progress, Task } from './thread-messages.ts';

/** Of one transaction. Larger ones write fewer blocks, and keep other graphs of the thread waiting for longer. */
const PAGE_SIZE = 2_000_000;
/** Of an event or fact without its passage. */
const EMPTY_SIZE = 200;
const PAGE_EVENTS = 1_000;
/** Times that an index is deleted within one catch-up before that fails. */
const MAX_RESTARTS = 3;

export interface CatchUpParts {
  readonly store: Pick<EventStore, 'readStream'>;
  threadOf(graphId: EntityId): SearchThread<Task>;
  /** Called with the number of events that an index has been caught up with. */
  onApplied(graphId: EntityId, events: number): void;
}

/** Brings indexes up to the ends of their streams: one run at a time for each graph, shared by the queries that wait. */
export class CatchUps {
  readonly #parts: CatchUpParts;
  readonly #runs = new SharedCalls((graphId: EntityId) => this.#run(graphId));

  constructor(parts: CatchUpParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the index has every event that was in the stream when this was called.
   *
   * @throws `Fault` `store_unavailable`; CorruptEventError
   */
  toEnd(graphId: EntityId): Promise<void> {
    return this.#runs.of(graphId);
  }

  async #run(graphId: EntityId): Promise<void> {
    const thread = this.#parts.threadOf(graphId);
    let cause: unknown;
    for (let restarts = 0; restarts <= MAX_RESTARTS; restarts++) {
      try {
        const progress = (await thread.run({ kind: 'progress', graphId })) as Progress;
        if (await this.#apply(graphId, progress)) return;
        await thread.run({ kind: 'delete', graphId });
      } catch (error) {
        if (!(error instanceof UnusableIndex)) throw error;
        cause = error;
      }
    }
    throw indexUnavailable(cause);
  }

  /** @returns false if the index has an event that the stream does not: it was built from another log */
  async #apply(graphId: EntityId, start: Progress): Promise<boolean> {
    const { store, onApplied } = this.#parts;
    const thread = this.#parts.threadOf(graphId);
    const stream = `${GRAPH}-${graphId}`;
    // The last event that the index has comes first: the stream must have the same.
    let isKnown = start.revision === -1;
    let page: IndexedEvent[] = [];
    let size = 0;
    // A page is written while the next one is read.
    let written = Promise.resolve();
    const write = async (): Promise<void> => {
      const events = page;
      [page, size] = [[], 0];
      await written;
      written = thread.run({ kind: 'write', graphId, events }).then(() => onApplied(graphId, events.length));
      // The next call or the end reports it.
      written.catch(() => undefined);
    };
    const from = streamRevision(Math.max(0, start.revision));
    for await (const stored of store.readStream(stream, { from })) {
      if (!isKnown) {
        if (stored.id !== start.event) return false;
        isKnown = true;
        continue;
      }
      const event = indexedEvent(stored);
      page.push(event);
      size += sizeOf(event);
      if (page.length >= PAGE_EVENTS || size >= PAGE_SIZE) await write();
    }
    if (page.length > 0) await write();
    await written;
    return isKnown;
  }
}

/** @throws CorruptEventError */
function indexedEvent(stored: StoredEvent): IndexedEvent {
  const atMs = Date.parse(textOf(stored.metadata, 'at') ?? '');
  return {
    revision: stored.revision,
    id: stored.id,
    atMs: Number.isNaN(atMs) ? stored.createdMs : atMs,
    event: graphCodec.decode(stored),
  };
}

/** Roughly, in characters. */
function sizeOf({ event }: IndexedEvent): number {
  if (event?.type !== 'FactsLearned.v1') return EMPTY_SIZE;
  const { passages, nodes, edges } = event.data;
  return passages.reduce((sum, { length }) => sum + length, (nodes.length + edges.length + 1) * EMPTY_SIZE);
}
