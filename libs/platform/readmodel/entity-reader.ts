import { NO_EVENTS } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';

import type { Document } from './document.ts';
import { DocumentReader } from './document-reader.ts';
import { idOfMember, readList } from './entity-list.ts';
import type { ListPage } from './entity-list.ts';
import { ProjectionState } from './projection-state.ts';
import type { Projector } from './projector.ts';
import { entityKeys } from './read-model.keys.ts';
import type { ListKeys } from './read-model.keys.ts';
import type { ReadModel } from './read-model.ts';

/** One page of ready documents; `last` is the sort key that the next page starts after. */
export interface DocumentPage {
  readonly documents: readonly Document[];
  readonly total: number;
  readonly hasNext: boolean;
  readonly last: string | null;
}

/** A list, and what it is narrowed by. */
export interface ListFilter {
  readonly category: string;
  /** Null for a list of organizations: each of them belongs to itself. */
  readonly organizationId: EntityId | null;
  readonly list: ListKeys;
  readonly facets: readonly [string, ...string[]];
}

/** An entity, and whose it is. */
export interface EntityPlace {
  readonly category: string;
  readonly organizationId: EntityId;
  readonly id: EntityId;
}

/**
 * Reads of entities by id and of lists, which stay right while read models are being built, and while they lack what
 * this process has written: a single entity is then folded to its end on the spot, because Redis may hold only its
 * beginning; a list answers 503 rather than lack entries.
 */
export class EntityReader {
  readonly #redis: RedisClient;
  readonly #readModel: ReadModel;
  readonly #projector: Projector;
  readonly #documents: DocumentReader;
  readonly #state: ProjectionState;
  /** Entities that are being brought up to date, by their revision keys. */
  readonly #catchingUp = new Map<string, Promise<boolean>>();

  constructor(redis: RedisClient, readModel: ReadModel, projector: Projector) {
    this.#redis = redis;
    this.#readModel = readModel;
    this.#projector = projector;
    this.#documents = new DocumentReader(redis);
    this.#state = new ProjectionState(redis);
  }

  /**
   * The entity's document, or null if the organization has no such entity.
   *
   * @throws `Fault` `store_unavailable`
   */
  async document(category: string, organizationId: EntityId, id: EntityId): Promise<Document | null> {
    const keys = entityKeys(category, organizationId, id);
    const { document, isComplete } = await this.#documents.one(keys.document);
    if (isComplete && !this.#projector.unapplied.has(keys.revision)) return document;
    await this.#catchUp({ category, organizationId, id });
    return (await this.#documents.one(keys.document)).document;
  }

  /**
   * The folded state that the entity was last projected with, or null if the organization has no such entity. Commands
   * are rejected for what is missing here, so a missing entity is confirmed on the log: complete read models may lag.
   *
   * @throws `Fault` `store_unavailable`
   */
  async state(category: string, organizationId: EntityId, id: EntityId): Promise<unknown> {
    const keys = entityKeys(category, organizationId, id);
    const { value, isComplete } = await this.#state.valueOf(keys.state);
    const isCurrent = isComplete && !this.#projector.unapplied.has(keys.revision);
    if (isCurrent && value !== null) return JSON.parse(value.toString());
    await this.#catchUp({ category, organizationId, id });
    const [caughtUp] = await this.#readModel.snapshots([keys]);
    return caughtUp?.state ?? null;
  }

  /**
   * Whether the read models hold the whole log, and of the entity all that this process has written. To be asked
   * before, or with, a read of parts of the entity: what is read by a `CollectionReader` in the same turn of the event
   * loop is read after it.
   */
  async isCurrent(category: string, organizationId: EntityId, id: EntityId): Promise<boolean> {
    const isBehind = this.#projector.unapplied.has(entityKeys(category, organizationId, id).revision);
    return (await this.#documents.isComplete()) && !isBehind;
  }

  /**
   * To be asked when a part of an entity is not there, or was not current: whether the read models lacked something of
   * it. The part is there, and of now, after that, if it exists.
   */
  async isBehind(category: string, organizationId: EntityId, id: EntityId): Promise<boolean> {
    const { revision } = entityKeys(category, organizationId, id);
    if ((await this.#state.isComplete()) && !this.#projector.unapplied.has(revision)) return false;
    await this.#catchUp({ category, organizationId, id });
    return true;
  }

  /**
   * Runs a read of many parts of an entity, of which nobody can tell whether some are missing.
   *
   * @returns null if the organization has no such entity
   * @throws `Fault` `not_caught_up` (503) if the entity was thrown away meanwhile
   */
  async whole<T>(entity: EntityPlace, read: () => Promise<T>): Promise<T | null> {
    const key = entityKeys(entity.category, entity.organizationId, entity.id).revision;
    let { value, isComplete } = await this.#state.valueOf(key);
    if (!isComplete || this.#projector.unapplied.has(key)) {
      await this.#catchUp(entity);
      ({ value, isComplete } = await this.#state.valueOf(key));
    }
    if (value === null) return null;
    const result = await read();
    // Whoever writes it again begins at its beginning: it is thrown away with its revision.
    const [revision = NO_EVENTS] = await this.#readModel.revisions([key]);
    if (revision >= Number(value)) return result;
    throw new Fault('not_caught_up', 'The read models are being built', { retryAfterSeconds: 2 });
  }

  /** Once for all who want the same entity. */
  #catchUp({ category, organizationId, id }: EntityPlace): Promise<boolean> {
    const { revision } = entityKeys(category, organizationId, id);
    let catchingUp = this.#catchingUp.get(revision);
    if (catchingUp === undefined) {
      catchingUp = this.#projector.catchUp(category, organizationId, id);
      this.#catchingUp.set(revision, catchingUp);
      const forget = (): void => void this.#catchingUp.delete(revision);
      catchingUp.then(forget, forget);
    }
    return catchingUp;
  }

  /** @throws `Fault` `store_unavailable`, or `not_caught_up` while the lists are being built */
  async page({ category, organizationId, list, facets }: ListFilter, page: ListPage): Promise<DocumentPage> {
    await this.#projector.unapplied.apply({ category, organizationId });
    return this.#state.whileComplete(async () => {
      const { members, total, hasNext } = await readList(this.#redis, list, facets, page);
      const ids = members.map(idOfMember);
      const keys = ids.map((id) => entityKeys(category, organizationId ?? id, id).document);
      const documents = (await this.#documents.many(keys)).filter((document) => document !== null);
      return { documents, total, hasNext, last: members.at(-1) ?? null };
    });
  }
}
