import { LRUCache } from 'lru-cache';

import { Fault } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

/** Port: what an interaction has to know of its organization and its users. */
export interface InteractionDirectory {
  user(organizationId: EntityId, userId: EntityId): Promise<{ readonly id: EntityId } | null>;
  /** The application that made the organization, or null. */
  application(organizationId: EntityId): Promise<string | null>;
}

const MAX_ORGANIZATIONS = 10_000;

/** The directory, which while Redis is away still knows the applications that it has told before. */
export function withMemory(directory: InteractionDirectory): InteractionDirectory {
  const known = new LRUCache<EntityId, { readonly application: string | null }>({ max: MAX_ORGANIZATIONS });
  return {
    user: (organizationId, userId) => directory.user(organizationId, userId),
    async application(organizationId) {
      try {
        const application = await directory.application(organizationId);
        known.set(organizationId, { application });
        return application;
      } catch (error) {
        const before = known.get(organizationId);
        if (before === undefined || !(error instanceof Fault)) throw error;
        return before.application;
      }
    },
  };
}
