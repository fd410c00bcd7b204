import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

/** An entity, and the revision up to which this process has appended its events. */
export interface UnappliedEntity {
  readonly noun: string;
  readonly organizationId: EntityId;
  readonly id: EntityId;
  readonly revision: StreamRevision;
}

/** Beyond it the oldest are forgotten: the projector applies them, and until then reads may lag. */
const MAX_ENTITIES = 10_000;

/**
 * Entities whose events this process appended and could not apply, because Redis was away, full or late. Until they
 * are applied, the read models lack what this process has acknowledged, and reads must not be answered from them.
 */
export class UnappliedEntities {
  /** By revision key, the oldest first. */
  readonly #entities = new Map<string, UnappliedEntity>();

  get size(): number {
    return this.#entities.size;
  }

  get(revisionKey: string): UnappliedEntity | undefined {
    return this.#entities.get(revisionKey);
  }

  entries(): [revisionKey: string, entity: UnappliedEntity][] {
    return [...this.#entities];
  }

  add(revisionKey: string, entity: UnappliedEntity): void {
    this.#entities.set(revisionKey, entity);
    if (this.#entities.size <= MAX_ENTITIES) return;
    for (const oldest of this.#entities.keys()) {
      this.#entities.delete(oldest);
      return;
    }
  }

  /** The read model of the entity reflects `revision`. */
  applied(revisionKey: string, revision: StreamRevision): void {
    const entity = this.#entities.get(revisionKey);
    if (entity !== undefined && entity.revision <= revision) this.#entities.delete(revisionKey);
  }
}
