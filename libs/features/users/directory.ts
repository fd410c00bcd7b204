import type { Organizations } from '#libs/features/organizations/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

import type { KnownUser, Users } from './user.read.ts';

/** Looks up the active users of organizations, and the applications that created the organizations. */
export class Directory {
  readonly #users: Users;
  readonly #organizations: Organizations;

  constructor(users: Users, organizations: Organizations) {
    this.#users = users;
    this.#organizations = organizations;
  }

  /** See `Users.user`. */
  user(organizationId: EntityId, userId: EntityId): Promise<KnownUser | null> {
    return this.#users.user(organizationId, userId);
  }

  /** The display name of an active user; null if the organization has no such user. */
  async nameOf(organizationId: EntityId, userId: EntityId): Promise<string | null> {
    return (await this.user(organizationId, userId))?.displayName ?? null;
  }

  /** See `Applications.of`. */
  application(organizationId: EntityId): Promise<string | null> {
    return this.#organizations.application(organizationId);
  }
}
