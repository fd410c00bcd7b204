import { NO_EVENTS, streamRevision, type StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EventStore, ReadStreamOptions, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { type HistoryPoint, streamName } from '#libs/platform/streams/index.ts';

import type { CollectionReader } from './collection-reader.ts';
import { BLOCK, blockOf, blockStart, historyKeys, type HistoryKeys } from './history.ts';
import type { Projector } from './projector.ts';
import type { EntityRef } from './read-model.keys.ts';
import type { ReadModel } from './read-model.ts';

/**
 * Reads the past of entities whose projection was made by `withHistory`. The cost of each method is bounded by one block of events, whatever the age of
 * the stream. All throw `Fault` `store_unavailable`.
 */
export class HistoryReader {
  readonly #stores: { readonly store: EventStore; readonly readModel: ReadModel };
  readonly #projector: Projector;
  readonly #collections: CollectionReader;

  constructor(
    stores: { readonly store: EventStore; readonly readModel: ReadModel },
    projector: Projector,
    collections: CollectionReader,
  ) {
    this.#stores = stores;
    this.#projector = projector;
    this.#collections = collections;
  }

  /**
   * Runs a read of what the entity was at a point: `revision` is that of the last event to take into account,
   * and the read model reflects it (or a later one) from the beginning of the read to its end. A point after
   * the end of the stream is its end.
   *
   * What a time means in logs whose times go back: see docs/decisions/0043-times-in-a-stream-never-go-back.md.
   *
   * @param entity must exist and be the organization's
   * @returns null if the point is before the first event
   * @throws `Fault` `not_caught_up` if the read models were deleted meanwhile
   */
  async at<T>(
    entity: EntityRef,
    point: HistoryPoint,
    read: (revision: StreamRevision) => Promise<T>,
  ): Promise<T | null> {
    const revision =
      'sequence' in point ? await this.#ofSequence(entity, point.sequence) : await this.#ofTime(entity, point.at);
    if (revision === NO_EVENTS) return null;
    const result = await read(revision);
    if ((await this.#stored(entity)) >= revision) return result;
    throw new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
  }

  /**
   * The first revision of the last block that had begun at a time (Unix milliseconds); null before the first event.
   * Times in a stream do not go back, so all events before it are from that time or earlier, and all events of later
   * blocks are from later. Logs of earlier versions may hold times that do go back: see
   * docs/decisions/0043-times-in-a-stream-never-go-back.md.
   */
  async blockBegunBy(entity: EntityRef, timeMs: number): Promise<StreamRevision | null> {
    const page = { before: timeMs + 1, order: 'desc', offset: 0, limit: 1 } as const;
    const [first] = await this.#collections.numbers(this.#keys(entity).times, page);
    return first === undefined ? null : streamRevision(first);
  }

  /** A kept value as it was before the block of `revision`, JSON parsed; null if it never changed before that. */
  async keptBefore(entity: EntityRef, name: string, revision: StreamRevision): Promise<unknown> {
    const keys = this.#keys(entity);
    const newest = { before: blockOf(revision) + 1, order: 'desc', offset: 0, limit: 1 } as const;
    const [block] = await this.#collections.numbers(keys.blocks(name), newest);
    if (block === undefined) return null;
    const [value] = await this.#collections.fields(keys.values(name), [block]);
    if (!value) throw new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
    return JSON.parse(value.toString()) as unknown;
  }

  /** The events of the block of `revision`, up to that one. */
  blockUpTo(
    entity: EntityRef,
    revision: StreamRevision,
    options?: Pick<ReadStreamOptions, 'needs'>,
  ): Promise<StoredEvent[]> {
    return this.events(entity, blockStart(revision), revision, options);
  }

  /** The events from one revision to another, both inclusive. */
  async events(
    entity: EntityRef,
    from: StreamRevision,
    to: StreamRevision,
    options?: Pick<ReadStreamOptions, 'needs'>,
  ): Promise<StoredEvent[]> {
    const events: StoredEvent[] = [];
    const stream = streamName(entity.category, entity.id);
    for await (const event of this.#stores.store.readStream(stream, { from, limit: to - from + 1, ...options })) {
      if (event.revision <= to) events.push(event);
    }
    return events;
  }

  /** Catches up if the read model lacks the sequence: the client may know it from a frame or a reply. */
  async #ofSequence(entity: EntityRef, sequence: number): Promise<StreamRevision> {
    const wanted = streamRevision(sequence - 1);
    let stored = await this.#stored(entity);
    if (stored < wanted) {
      await this.#catchUp(entity);
      stored = await this.#stored(entity);
    }
    return stored < wanted ? stored : wanted;
  }

  async #ofTime(entity: EntityRef, at: string): Promise<StreamRevision> {
    const timeMs = Date.parse(at);
    // Events that the read model lacks may have happened before that time.
    await this.#catchUp(entity);
    const first = await this.blockBegunBy(entity, timeMs);
    if (first === null) return NO_EVENTS;
    const stored = await this.#stored(entity);
    const end = Math.min(first + BLOCK - 1, stored);
    let reached = first;
    for (const event of await this.events(entity, first, streamRevision(end))) {
      if (event.revision > first && timeMsOf(event) > timeMs) break;
      reached = event.revision;
    }
    return reached;
  }

  async #stored(entity: EntityRef): Promise<StreamRevision> {
    const [stored] = await this.#stores.readModel.revisions([this.#projector.keysOf(entity).revision]);
    return stored ?? NO_EVENTS;
  }

  async #catchUp({ category, organizationId, id }: EntityRef): Promise<void> {
    await this.#projector.catchUp(category, organizationId, id);
  }

  #keys(entity: EntityRef): HistoryKeys {
    return historyKeys(this.#projector.keysOf(entity));
  }
}

/** Unix milliseconds; an event without a time counts as simultaneous with the one before it. */
function timeMsOf({ metadata }: StoredEvent): number {
  const at: unknown = typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'at') : undefined;
  const timeMs = typeof at === 'string' ? Date.parse(at) : Number.NaN;
  return Number.isNaN(timeMs) ? Number.NEGATIVE_INFINITY : timeMs;
}
