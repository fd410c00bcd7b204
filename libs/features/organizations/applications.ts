import { LRUCache } from 'lru-cache';

import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { Organizations } from './organization.read.ts';

const MAX_ORGANIZATIONS = 10_000;
/** Maximum age of a read, unless announcements prove that the organization has not changed since. */
const MAX_STALENESS_MS = 800;
/** Maximum age even then: a change may be announced before the read model has it, or not at all if its process dies. */
const MAX_AGE_MS = 60_000;

/** Port: announcements of changes. May miss some, and then does not claim to have received all. */
export interface Announcements {
  /** @param sinceMs by `performance.now()` */
  areReceivedSince(sinceMs: number, withinMs: number): boolean;
  /** Calls `onChange` when an organization has changed, or may have. */
  onOrganizations(onChange: () => void): void;
}

interface Reading {
  readonly application: string | null;
  /** When the read began, by `performance.now()`. */
  readonly readAtMs: number;
}

/**
 * The applications that organizations belong to, which every interaction names. Kept in memory, because a post by one
 * writer would wait for Redis only to read one.
 *
 * Guarantees: a change by this process counts for its next post, one by another process within a second, or within a
 * minute if its announcement is lost. While Redis is away, the last known application counts.
 */
export class Applications {
  readonly #organizations: Pick<Organizations, 'find'>;
  readonly #announcements: Announcements;
  readonly #clock: () => number;
  readonly #known = new LRUCache<EntityId, Reading>({ max: MAX_ORGANIZATIONS });
  /** Reads that began before this time may lack changes. */
  #changedAtMs = -Infinity;

  /** @param clock monotonic, in milliseconds */
  constructor(
    organizations: Pick<Organizations, 'find'>,
    announcements: Announcements,
    clock = (): number => performance.now(),
  ) {
    this.#organizations = organizations;
    this.#announcements = announcements;
    this.#clock = clock;
    // They are rare: a change of one organization makes all be read again.
    announcements.onOrganizations(() => {
      this.#changedAtMs = clock();
    });
  }

  /** @throws `Fault` `store_unavailable` if it was never read */
  async of(id: EntityId): Promise<string | null> {
    const known = this.#known.get(id);
    if (known !== undefined && this.#isCurrent(known)) return known.application;
    try {
      const readAtMs = this.#clock();
      const organization = await this.#organizations.find(id, id);
      const application = organization?.application ?? null;
      // Not of a missing one: nothing announces that it is created.
      if (organization !== null) this.#known.set(id, { application, readAtMs });
      return application;
    } catch (error) {
      if (known === undefined || !(error instanceof Fault)) throw error;
      return known.application;
    }
  }

  #isCurrent({ readAtMs }: Reading): boolean {
    if (readAtMs <= this.#changedAtMs) return false;
    const age = this.#clock() - readAtMs;
    if (age < MAX_STALENESS_MS) return true;
    return age < MAX_AGE_MS && this.#announcements.areReceivedSince(readAtMs, MAX_STALENESS_MS);
  }
}
