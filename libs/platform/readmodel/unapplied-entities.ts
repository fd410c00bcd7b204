import { NO_EVENTS, type StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { EntityRef } from './read-model.keys.ts';

/** An entity, and the revision up to which this process has appended its events. */
interface UnappliedEntity extends EntityRef {
  readonly revision: StreamRevision;
}

/** Beyond it the oldest are forgotten, and every entity counts as unapplied until the set is empty. */
const MAX_ENTITIES = 10_000;
/** Entities that one call brings up to date, one after another: a request waits for it. */
const AT_ONCE = 100;

/** Both throw `Fault` when a store is unavailable. */
interface UnappliedEntitiesParts {
  /** The revisions that the read models reflect, by revision keys. */
  revisions(revisionKeys: readonly string[]): Promise<readonly StreamRevision[]>;
  catchUp(entity: UnappliedEntity): Promise<unknown>;
}

/**
 * Entities whose events this process appended and could not apply, because Redis was unavailable, full or slow. Until they
 * are applied, the read models lack what this process has acknowledged, and reads must not be answered from them.
 *
 * Entities that were forgotten are brought up to date by the projector, or one by one when they are read. The projector
 * follows the order of the log: once the newer ones that are remembered are applied, those count as applied too.
 */
export class UnappliedEntities {
  readonly #parts: UnappliedEntitiesParts;
  /** By revision key, the oldest first. */
  readonly #entities = new Map<string, UnappliedEntity>();
  /** Whether entities were forgotten since the set was last empty. */
  #hasForgotten = false;

  constructor(parts: UnappliedEntitiesParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#entities.size;
  }

  get(revisionKey: string): UnappliedEntity | undefined {
    return this.#entities.get(revisionKey);
  }

  /** Whether the read model may lack events of the entity; true for all entities while some are forgotten. */
  has(revisionKey: string): boolean {
    return this.#hasForgotten || (this.#entities.size > 0 && this.#entities.has(revisionKey));
  }

  add(revisionKey: string, entity: UnappliedEntity): void {
    // Moves an entity that is added again to the end of the order.
    this.#entities.delete(revisionKey);
    this.#entities.set(revisionKey, entity);
    if (this.#entities.size <= MAX_ENTITIES) return;
    this.#hasForgotten = true;
    const [oldest = ''] = this.#entities.keys();
    this.#entities.delete(oldest);
  }

  /** The read model of the entity reflects `revision`. */
  applied(revisionKey: string, revision: StreamRevision): void {
    const entity = this.#entities.get(revisionKey);
    if (entity !== undefined && entity.revision <= revision) this.#entities.delete(revisionKey);
    if (this.#entities.size === 0) this.#hasForgotten = false;
  }

  /**
   * Brings them up to date: all, or those of a category, of one organization or of all (null). While some are forgotten, this
   * only checks whether the projector has applied all that are remembered.
   *
   * @throws `Fault` when a store is unavailable, or `not_caught_up` when this takes more than one call, or needs the projector
   */
  async apply(of?: { readonly category: string; readonly organizationId: EntityId | null }): Promise<void> {
    if (this.size === 0) return;
    const missing = [...this.#entities].filter(
      ([, { category, organizationId }]) =>
        !of ||
        this.#hasForgotten ||
        (category === of.category && organizationId === (of.organizationId ?? organizationId)),
    );
    // A projector may have applied most of them meanwhile.
    const revisions = await this.#parts.revisions(missing.map(([key]) => key));
    for (const [index, [key]] of missing.entries()) this.applied(key, revisions[index] ?? NO_EVENTS);
    if (this.#hasForgotten) throw lagging();
    const rest = missing.filter(([key]) => this.#entities.has(key));
    for (const [, entity] of rest.slice(0, AT_ONCE)) await this.#parts.catchUp(entity);
    if (rest.length > AT_ONCE) throw lagging();
  }
}

function lagging(): Fault {
  return new Fault('not_caught_up', 'The read models lag behind', { retryAfterSeconds: 2 });
}
