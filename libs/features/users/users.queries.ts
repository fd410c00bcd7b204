import type { EntityId } from '#libs/kernel/ids.ts';
import type { Document, DocumentPage, EntityReader, ListPage } from '#libs/platform/readmodel/index.ts';

import { DEFAULT_AVATAR_URL } from './default-avatar.ts';
import type { User, UserState } from './user.decider.ts';
import { USER } from './user.events.ts';
import { userListKeys } from './users.keys.ts';
import { facetOf } from './users.projection.ts';

/** An active user, as other features need to know one. */
export interface KnownUser {
  readonly id: EntityId;
  readonly organizationId: EntityId;
  readonly displayName: string;
  readonly imageUrl: string | null;
}

/** Reads of users. All throw the faults of `EntityReader`. */
export class UserQueries {
  readonly #reader: EntityReader;

  constructor(reader: EntityReader) {
    this.#reader = reader;
  }

  /** The user as REST answers it, or null if there is none or it is another organization's. */
  document(organizationId: EntityId, id: EntityId): Promise<Document | null> {
    return this.#reader.document(USER, organizationId, id);
  }

  /** Someone who can act or take part now: null for a missing, another organization's or a deactivated user. */
  async user(organizationId: EntityId, id: EntityId): Promise<KnownUser | null> {
    const user = await this.#find(organizationId, id);
    if (user === null || user.deactivatedAt !== null) return null;
    return { id: user.id, organizationId, displayName: user.displayName, imageUrl: user.imageUrl };
  }

  /** The contract's user summary (section 2.3), of deactivated users too; null as for {@link document}. */
  async summary(
    organizationId: EntityId,
    id: EntityId,
  ): Promise<{ readonly display_name: string; readonly image_url: string } | null> {
    const user = await this.#find(organizationId, id);
    return user && { display_name: user.displayName, image_url: user.imageUrl ?? DEFAULT_AVATAR_URL };
  }

  /** Newest first; all of them, or only those that are active, or not. */
  list(
    organizationId: EntityId,
    filter: { readonly isActive?: boolean | undefined },
    page: ListPage,
  ): Promise<DocumentPage> {
    const list = userListKeys(organizationId);
    return this.#reader.page({ category: USER, organizationId, list, facets: [facetOf(filter.isActive)] }, page);
  }

  async #find(organizationId: EntityId, id: EntityId): Promise<User | null> {
    // Written by this feature's own fold, under keys that carry the version of its shape.
    return (await this.#reader.state(USER, organizationId, id)) as UserState;
  }
}
