import type { Redis } from 'ioredis';

import type { EntityId } from '#libs/kernel/ids.ts';

import { decodeDocument } from './document.ts';
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
  readonly noun: string;
  readonly organizationId: EntityId;
  readonly list: ListKeys;
  readonly facets: readonly [string, ...string[]];
}

/**
 * Reads of entities by id and of lists, which stay right while read models are being built: a single
 * entity is then folded on the spot, a list answers 503 rather than lack entries.
 */
export class EntityReader {
  readonly #redis: Redis;
  readonly #readModel: ReadModel;
  readonly #projector: Projector;
  readonly #documents: DocumentReader;
  readonly #state: ProjectionState;

  constructor(redis: Redis, readModel: ReadModel, projector: Projector) {
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
  async document(noun: string, organizationId: EntityId, id: EntityId): Promise<Document | null> {
    const key = entityKeys(noun, organizationId, id).document;
    const found = await this.#documents.one(key);
    if (found !== null) return found;
    const { value, isComplete } = await this.#state.valueOf(key);
    if (value !== null) return decodeDocument(value);
    if (isComplete) return null;
    await this.#projector.catchUp(noun, organizationId, id);
    return this.#documents.one(key);
  }

  /**
   * The folded state that the entity was last projected with, or null if there is none.
   *
   * @throws `Fault` `store_unavailable`
   */
  async state(noun: string, organizationId: EntityId, id: EntityId): Promise<unknown> {
    const keys = entityKeys(noun, organizationId, id);
    const [found] = await this.#readModel.snapshots([keys]);
    if (found) return found.state;
    const { value, isComplete } = await this.#state.valueOf(keys.state);
    if (value !== null) return JSON.parse(value.toString());
    if (isComplete) return null;
    await this.#projector.catchUp(noun, organizationId, id);
    const [caughtUp] = await this.#readModel.snapshots([keys]);
    return caughtUp?.state ?? null;
  }

  /**
   * To be asked when a part of an entity is not there: whether it was missing from read models that are
   * still being built. It is there after that, if it exists.
   */
  async isBehind(noun: string, organizationId: EntityId, id: EntityId): Promise<boolean> {
    if (await this.#state.isComplete()) return false;
    await this.#projector.catchUp(noun, organizationId, id);
    return true;
  }

  /** @throws `Fault` `store_unavailable`, or `not_caught_up` while the lists are being built */
  async page({ noun, organizationId, list, facets }: ListFilter, page: ListPage): Promise<DocumentPage> {
    return this.#state.whileComplete(async () => {
      const { members, total, hasNext } = await readList(this.#redis, list, facets, page);
      const keys = members.map((member) => entityKeys(noun, organizationId, idOfMember(member)).document);
      const documents = (await this.#documents.many(keys)).filter((document) => document !== null);
      return { documents, total, hasNext, last: members.at(-1) ?? null };
    });
  }
}
