import { NO_EVENTS, type StreamRevision, streamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { joinedCall } from '#libs/platform/lifecycle/index.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';

import { CategoryReader } from './category-reader.ts';
import { decodeDocument, type Document } from './document.ts';
import {
  type DocumentPage,
  idOfMember,
  type ListFilter,
  type ListPage,
  type Page,
  readIds,
  readList,
  type StatePage,
} from './entity-list.ts';
import { KeptReads, type KeptRead, type WholeRead } from './kept-reads.ts';
import type { Projector } from './projector.ts';
import {
  ALL_ORGANIZATIONS,
  entityKeys,
  type EntityKeys,
  listKeys,
  partKey,
  type EntityRef,
} from './read-model.keys.ts';
import type { ReadModel } from './read-model.ts';
import { type SeenPosition, waitUntilVisible } from './visibility.ts';

/**
 * Reads of entities by id and of lists, which stay correct while the read models of a category are being built, and
 * while they lack events that this process has appended: a single entity is then folded to the end of its stream on the
 * spot, because Redis may hold only its beginning; a list answers 503 rather than lack entries.
 */
export class EntityReader {
  readonly #redis: RedisClient;
  readonly #readModel: ReadModel;
  readonly #projector: Projector;
  readonly #categories: ReadonlyMap<string, CategoryReader>;
  readonly kept = new KeptReads();
  /** Entities that are being brought up to date, by their revision keys. */
  readonly #catchingUp = new Map<string, Promise<boolean>>();

  constructor(redis: RedisClient, readModel: ReadModel, projector: Projector) {
    this.#redis = redis;
    this.#readModel = readModel;
    this.#projector = projector;
    this.#categories = new Map(projector.readModels.map((name) => [name.category, new CategoryReader(redis, name)]));
  }

  #of(category: string): CategoryReader {
    const reader = this.#categories.get(category);
    if (reader === undefined) throw new TypeError(`no projection of the category ${category}`);
    return reader;
  }

  /**
   * The entity's document, or null if the organization has no such entity.
   *
   * @throws `Fault` `store_unavailable`
   */
  async document(category: string, organizationId: EntityId, id: EntityId): Promise<Document | null> {
    const reader = this.#of(category);
    const keys = this.#projector.keysOf({ category, organizationId, id });
    const { document, isComplete } = await reader.document(keys.document);
    if (isComplete && !this.#projector.unapplied.has(keys.revision)) return document;
    await this.#catchUp({ category, organizationId, id });
    return (await reader.document(keys.document)).document;
  }

  /**
   * The folded state that the entity was last projected with, or null if the organization has no such entity. Commands
   * are rejected for what is missing here, so a missing entity is confirmed on the log: complete read models may lag.
   *
   * @param part the only part of the state to read, where it has parts
   * @throws `Fault` `store_unavailable`
   */
  async state(category: string, organizationId: EntityId, id: EntityId, part?: string): Promise<unknown> {
    const reader = this.#of(category);
    const keys = this.#projector.keysOf({ category, organizationId, id });
    const key = part === undefined ? keys.state : partKey(keys.state, part);
    let { value, isComplete } = await reader.value(key);
    if (value === null || !isComplete || this.#projector.unapplied.has(keys.revision)) {
      await this.#catchUp({ category, organizationId, id });
      ({ value } = await reader.value(key));
    }
    return value && JSON.parse(value.toString());
  }

  /**
   * Whether the read models hold the whole log, and all events of the entity that this process has appended. To be
   * called before, or in the same iteration of the event loop as, a read of parts of the entity by a `CollectionReader`,
   * which is then sent after it.
   */
  async isCurrent(category: string, organizationId: EntityId, id: EntityId): Promise<boolean> {
    const isBehind = this.#projector.unapplied.has(this.#projector.keysOf({ category, organizationId, id }).revision);
    return (await this.#of(category).isComplete()) && !isBehind;
  }

  /**
   * To be called when a part of an entity is missing, or was not current: whether the read models lacked events of it.
   * If so, they are up to date afterwards.
   */
  async isBehind(category: string, organizationId: EntityId, id: EntityId): Promise<boolean> {
    if (await this.isCurrent(category, organizationId, id)) return false;
    await this.#catchUp({ category, organizationId, id });
    return true;
  }

  /**
   * Runs a read of one part of an entity in one round trip: `read` sends its first request synchronously. With `keep`, the
   * result of an earlier run is returned while the entity has not changed: the same object for all callers.
   *
   * @returns null if the organization has no such entity, or the entity no such part
   */
  async part<T>(entity: EntityRef, read: () => Promise<T | null>, keep?: KeptRead<T>): Promise<T | null> {
    const { category, organizationId, id } = entity;
    const key = this.#projector.keysOf(entity).revision;
    // 1. What earlier runs have found, and from the second run on the revision now: most reads are run once.
    const known = keep && this.kept.begin(key + keep.name);
    const revision = known && this.#completeRevision(entity);
    // 2. Nothing has changed since the result was kept.
    if (known && known.result !== null && (await revision) === known.revision && !this.#projector.unapplied.has(key)) {
      return known.result as T;
    }
    // 3. The part, and whether the read models are complete, in one round trip.
    const [isCurrent, found] = await Promise.all([this.isCurrent(category, organizationId, id), read()]);
    // 4. Missing, or not current: the read models may have become complete between the two.
    if (found === null || !isCurrent) {
      const wasBehind = await this.isBehind(category, organizationId, id);
      return wasBehind || !isCurrent ? read() : found;
    }
    // 5. The caller does not wait until it is known that the revision has held.
    if (keep && revision) void this.#keepPart(entity, keep, found, [known.revision, revision]);
    return found;
  }

  /**
   * @param revisions at the last read, and as sent just before the requests that found `found`; in a cluster, the second
   *   may be read after them (redirected, or read twice), but never the first
   */
  async #keepPart<T>(
    entity: EntityRef,
    keep: KeptRead<T>,
    found: T,
    [last, before]: readonly [last: string | null, before: Promise<string | null>],
  ): Promise<void> {
    const name = this.#projector.keysOf(entity).revision + keep.name;
    const revision = await before;
    if (revision === null) return;
    if (revision !== last) this.kept.note(name, revision);
    else if ((await this.#completeRevision(entity)) === revision) this.kept.keep(name, revision, keep.pack(found));
  }

  /** As text; null if the read models are not complete, or if Redis does not answer. */
  async #completeRevision(entity: EntityRef): Promise<string | null> {
    const { revision } = this.#projector.keysOf(entity);
    try {
      const { value, isComplete } = await this.#of(entity.category).value(revision);
      return isComplete && value !== null ? value.toString('latin1') : null;
    } catch {
      return null;
    }
  }

  /**
   * Runs a read of many parts of an entity, which cannot show by themselves whether some are missing. `keep` as for
   * {@link part}.
   *
   * @returns null if the organization has no such entity
   * @throws `Fault` `not_caught_up` (503) if the entity was deleted meanwhile
   */
  async whole<T>(entity: EntityRef, read: () => Promise<T | null>, keep?: KeptRead<T>): Promise<WholeRead<T> | null> {
    const reader = this.#of(entity.category);
    const key = this.#projector.keysOf(entity).revision;
    const known = keep && this.kept.begin(key + keep.name);
    // 1. The revision, and whether the read models are complete.
    let before = await reader.value(key);
    const isCurrent = before.isComplete && !this.#projector.unapplied.has(key);
    // 2. Not current: bring the entity up to date.
    if (!isCurrent) {
      await this.#catchUp(entity);
      before = await reader.value(key);
    }
    if (before.value === null) return null;
    const revision = before.value.toString('latin1');
    // 3. Nothing has changed since the result was kept.
    if (known && known.result !== null && known.revision === revision) {
      return { result: known.result as T, revision: streamRevision(Number(revision)), hasHeld: true };
    }
    // 4. Read. An entity is deleted with its revision, and the next write starts from its first event.
    const result = await read();
    const after = await reader.value(key);
    if (after.value === null || Number(after.value) < Number(revision)) throw beingBuilt();
    // 5. Keep what is of this revision. Deleting read models removes the completeness mark first: while it is set, the
    // read missed no part of the entity.
    const hasHeld = after.value.equals(before.value);
    if (keep && result !== null && hasHeld && isCurrent && after.isComplete) {
      if (known?.revision === revision) this.kept.keep(key + keep.name, revision, keep.pack(result));
      else this.kept.note(key + keep.name, revision);
    }
    return { result, revision: streamRevision(Number(revision)), hasHeld };
  }

  /**
   * The same read in two round trips: `find` reads some parts together with the revision that they reflect, and `read`
   * the others, all of which it requests synchronously; on one server, the revision is read right after them.
   *
   * @returns null if the two differ, or the entity is missing or not current: then {@link whole} says more
   */
  async together<Found extends { readonly revision: string }, T>(
    entity: EntityRef,
    find: () => Promise<Found | null>,
    read: (found: Found) => Promise<T>,
    keep?: KeptRead<T>,
  ): Promise<WholeRead<T> | null> {
    const key = this.#projector.keysOf(entity).revision;
    const name = keep && key + keep.name;
    const known = name === undefined ? undefined : this.kept.begin(name);
    if (this.#projector.unapplied.has(key)) return null;
    if (known && known.result !== null && (await this.#completeRevision(entity)) === known.revision) {
      return wholeOf(known.result as T, known.revision ?? '');
    }
    const found = await find();
    if (found === null) return null;
    const reading = read(found);
    const reader = this.#of(entity.category);
    // A node of a cluster may redirect the one and not the other.
    const checking = this.#redis.isOneServer ? reader.valueAtLast(key) : reading.then(() => reader.value(key));
    const [result, after] = await Promise.all([reading, checking]);
    const { revision } = found;
    // Complete read models hold all events; the entity was not deleted or built meanwhile, because the mark was there.
    if (!after.isComplete || after.value?.toString('latin1') !== revision) return null;
    if (keep && name !== undefined) {
      if (known?.revision === revision) this.kept.keep(name, revision, keep.pack(result));
      else this.kept.note(name, revision);
    }
    return wholeOf(result, revision);
  }

  /** Runs once for all concurrent callers of the same entity. */
  #catchUp({ category, organizationId, id }: EntityRef): Promise<boolean> {
    const { revision } = this.#projector.keysOf({ category, organizationId, id });
    return joinedCall(this.#catchingUp, revision, () => this.#projector.catchUp(category, organizationId, id));
  }

  /** @throws `Fault` `store_unavailable`, or `not_caught_up` while the lists are being built */
  async page(list: ListFilter, page: ListPage): Promise<DocumentPage> {
    const { items, ...found } = await this.#page(list, page, ({ document }) => document, decodeDocument);
    return { ...found, documents: items };
  }

  /** @param part as for {@link state}. @throws as {@link page} */
  async states(list: ListFilter, page: ListPage, part?: string): Promise<StatePage<unknown>> {
    const keyOf = ({ state }: EntityKeys): string => (part === undefined ? state : partKey(state, part));
    const { items, ...found } = await this.#page(list, page, keyOf, (json): unknown => JSON.parse(json.toString()));
    return { ...found, states: items };
  }

  /** Ids of all entries. @throws as {@link page} */
  async ids({ category, organizationId, facets }: ListFilter): Promise<readonly EntityId[]> {
    const reader = this.#of(category);
    const list = listKeys(reader.name, organizationId ?? ALL_ORGANIZATIONS);
    return reader.whileComplete(() => readIds(this.#redis, list, facets));
  }

  /** All entries, each with the revision that its read model reflects. @throws as {@link page} */
  async revisions(list: ListFilter): Promise<(readonly [id: EntityId, revision: StreamRevision])[]> {
    const { category, organizationId } = list;
    await this.#projector.unapplied.apply({ category, organizationId });
    const ids = await this.ids(list);
    const keys = ids.map((id) => entityKeys(this.#of(category).name, organizationId ?? id, id).revision);
    const revisions = await this.#readModel.revisions(keys);
    return ids.map((id, index) => [id, revisions[index] ?? NO_EVENTS]);
  }

  async #page<T>(
    { category, organizationId, facets }: ListFilter,
    page: ListPage,
    keyOf: (keys: EntityKeys) => string,
    decoded: (value: Buffer) => T,
  ): Promise<Page & { readonly items: readonly T[]; readonly ids: readonly EntityId[] }> {
    const reader = this.#of(category);
    await this.#projector.unapplied.apply({ category, organizationId });
    const list = listKeys(reader.name, organizationId ?? ALL_ORGANIZATIONS);
    return reader.whileComplete(async () => {
      const { members, total, hasNext } = await readList(this.#redis, list, facets, page);
      const ids = members.map(idOfMember);
      const keys = ids.map((id) => keyOf(entityKeys(reader.name, organizationId ?? id, id)));
      const values = await reader.values(keys, decoded);
      const found = { items: values.filter((item) => item !== null), ids: ids.filter((_, n) => values[n] !== null) };
      return { ...found, total, hasNext, last: members.at(-1) ?? null };
    });
  }

  /** See {@link waitUntilVisible}. */
  waitUntilVisible(position: SeenPosition, timeoutMs: number): Promise<boolean> {
    return waitUntilVisible({ readModel: this.#readModel, projector: this.#projector }, position, timeoutMs);
  }
}

function wholeOf<T>(result: T, revision: string): WholeRead<T> {
  return { result, revision: streamRevision(Number(revision)), hasHeld: true };
}

function beingBuilt(): Fault {
  return new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
}
