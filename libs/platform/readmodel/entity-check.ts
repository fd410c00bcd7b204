import { foldEvents } from '#libs/kernel/decider.ts';
import { NO_EVENTS, type StreamRevision } from '#libs/kernel/event.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';
import type { EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import { ExpectedValues } from './expected-values.ts';
import { projectRun } from './projection.ts';
import type { Projector } from './projector.ts';
import { entityKeys, type EntityKeys, type EntityRef } from './read-model.keys.ts';
import type { IndexedEntry, ReadModel, WriteOperation } from './read-model.ts';
import type { AnyProjection } from './stored-run.ts';

/** `skipped`: the stream lacks its beginning, or changes all the time. */
export type CheckOutcome = 'same' | 'repaired' | 'skipped';

export interface EntityCheckParts {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly redis: RedisClient;
  readonly readModel: Pick<ReadModel, 'revisions'>;
  readonly projector: Projector;
  readonly projections: readonly AnyProjection[];
}

/** Events that are folded and compared at once: about 10 ms of work. */
const PAGE = 100;
const ROUNDS = 5;
/** A process that has appended events applies them within this time, usually. */
const APPLIED_MS = 250;
/** Differences that are kept until the end of a long stream, where later events may explain them. */
const MAX_DIFFERENCES = 2_000;

interface Folding {
  readonly projection: AnyProjection;
  readonly entity: EntityRef;
  readonly keys: EntityKeys;
  readonly expected: ExpectedValues;
  state: unknown;
  last: StreamRevision;
}

/**
 * Compares the read model of an entity with its stream, value by value, and folds it again where they differ: Redis may
 * have lost or changed single keys, by a damaged file, an eviction, or an operator's hand, and nothing else notices.
 *
 * Omissions: values that no event of the stream demands, such as a foreign member of a list, stay.
 */
export class EntityCheck {
  readonly #parts: EntityCheckParts;
  readonly #projections: ReadonlyMap<string, AnyProjection>;

  constructor(parts: EntityCheckParts) {
    this.#parts = parts;
    this.#projections = new Map(parts.projections.map((projection) => [projection.category, projection]));
  }

  /**
   * @param rest called after each page of events
   * @throws `Fault` `store_unavailable`; `CorruptEventError`
   */
  async run(entity: EntityRef, rest: () => Promise<void>): Promise<CheckOutcome> {
    const projection = this.#projections.get(entity.category);
    if (projection === undefined) return 'skipped';
    const keys = entityKeys(projection, entity.organizationId, entity.id);
    const { initialState: state } = projection.fold;
    const expected = new ExpectedValues(this.#parts.redis);
    const folding: Folding = { projection, entity, keys, expected, state, last: NO_EVENTS };
    for (let round = 0, stored = NO_EVENTS; round < ROUNDS; round += 1) {
      if (!(await this.#foldTail(folding, rest))) return 'skipped';
      if (folding.last === NO_EVENTS) return 'skipped';
      // An event is applied after it is in the log, so the log has all that were applied before it was read.
      const isAhead = stored > folding.last;
      stored = await this.#revision(keys);
      // Events that followed meanwhile may explain a difference.
      if (stored > folding.last && !isAhead) continue;
      if (stored < folding.last && round === 0) {
        await pause(APPLIED_MS);
        continue;
      }
      const lists = await this.#differentLists(folding);
      await expected.compare();
      if ((await this.#revision(keys)) !== stored) continue;
      if (stored === folding.last && expected.size === 0 && lists.length === 0) return 'same';
      await this.#repair(folding, lists);
      return 'repaired';
    }
    return 'skipped';
  }

  async #revision(keys: EntityKeys): Promise<StreamRevision> {
    const [stored = NO_EVENTS] = await this.#parts.readModel.revisions([keys.revision]);
    return stored;
  }

  /** @returns false if the stream lacks events */
  async #foldTail(folding: Folding, rest: () => Promise<void>): Promise<boolean> {
    const { projection, entity } = folding;
    const stream = streamName(projection.category, entity.id);
    for (let page: StoredEvent[] = [], isEnd = false; !isEnd; page = []) {
      const from = (folding.last + 1) as StreamRevision;
      for await (const event of this.#parts.store.readStream(stream, { from, limit: PAGE, needs: 'nothing' })) {
        if (event.revision !== from + page.length) return false;
        page.push(event);
      }
      if (page.length > 0) await this.#fold(folding, page);
      isEnd = page.length < PAGE;
      await rest();
    }
    return folding.expected.size <= MAX_DIFFERENCES;
  }

  async #fold(folding: Folding, page: readonly StoredEvent[]): Promise<void> {
    const { projection, entity, keys, expected, state: before } = folding;
    const events = page.map((event) => projection.codec.decode(event)).filter((event) => event !== null);
    const after: unknown = foldEvents(projection.fold, before, events);
    const run = { organizationId: entity.organizationId, id: entity.id, before, after, events };
    expected.add(projectRun(projection, run, keys).operations);
    folding.state = after;
    folding.last = page.at(-1)?.revision ?? folding.last;
    // Most values are final; of the others, later pages bring the final ones.
    await expected.compare();
  }

  /** The list entries that differ, each with the operations that remove its present members. */
  async #differentLists(folding: Folding): Promise<{ readonly key: string; readonly removal: WriteOperation[] }[]> {
    const { projection, entity, keys, state } = folding;
    const run = { ...entity, before: state, after: state, events: [], isRepair: true };
    const { lists } = projectRun(projection, run, keys);
    const found = await Promise.all(lists.map((entry) => this.#differenceOf(entry)));
    return found.filter((difference) => difference !== null);
  }

  async #differenceOf({ list, member, facets }: IndexedEntry) {
    const { redis } = this.#parts;
    const text = await redis.send(list.members, (node) => node.hget(list.members, member));
    const [, ...known] = text?.split(' ') ?? [];
    const indexOf = (facet: string): string => `${list.indexPrefix}${facet}`;
    const scores = await Promise.all(
      facets.map((facet) => redis.send(indexOf(facet), (node) => node.zscore(indexOf(facet), member))),
    );
    const isSame = new Set(known).symmetricDifference(new Set(facets)).size === 0 && !scores.includes(null);
    if (isSame) return null;
    const removal: WriteOperation[] = [
      { command: 'HDEL', key: list.members, args: [member] },
      ...known.map((facet): WriteOperation => ({ command: 'ZREM', key: indexOf(facet), args: [member] })),
    ];
    return { key: list.members, removal };
  }

  /**
   * Removes the revision, so that the entity is folded from its first event, and its entries of lists, which are guarded by
   * revisions of their own. Readers find the former document meanwhile.
   */
  async #repair(
    { entity, keys }: Folding,
    lists: readonly { readonly key: string; readonly removal: readonly WriteOperation[] }[],
  ): Promise<void> {
    const { redis, projector } = this.#parts;
    await redis.remove([keys.revision]);
    for (const { key, removal } of lists) {
      await redis.send(key, async (node) => {
        const transaction = node.multi();
        for (const { command, key: part, args } of removal) transaction.call(command, part, ...args);
        await transaction.exec();
      });
    }
    // Another process may have folded the entity before its entries were removed. The first removal is for a process that
    // ends in between.
    if (lists.length > 0) await redis.remove([keys.revision]);
    await projector.catchUp(entity.category, entity.organizationId, entity.id);
  }
}
