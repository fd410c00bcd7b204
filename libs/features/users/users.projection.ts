import { encodeDocument, listMember } from '#libs/platform/readmodel/index.ts';
import type { Projection } from '#libs/platform/readmodel/index.ts';

import { userFold } from './user.decider.ts';
import type { User, UserState } from './user.decider.ts';
import { USER, userCodec } from './user.events.ts';
import type { UserEvent } from './user.events.ts';
import { userListKeys } from './users.keys.ts';

export const userProjection: Projection<UserState, UserEvent> = {
  category: USER,
  codec: userCodec,
  fold: userFold,
  project({ organizationId, id, after }, keys) {
    if (after === null) return { operations: [], lists: [] };
    return {
      operations: [
        { command: 'SET', key: keys.document, args: [encodeDocument(after.changedRevision, userResource(after))] },
      ],
      lists: [
        {
          list: userListKeys(organizationId),
          member: listMember(after.createdAt, id),
          facets: ['all', facetOf(after.deactivatedAt === null)],
        },
      ],
    };
  },
};

/** The index of the users that are active, that are not, or (without a filter) of all of them. */
export function facetOf(isActive: boolean | undefined): string {
  if (isActive === undefined) return 'all';
  return isActive ? 'active' : 'deactivated';
}

/** The user as the API answers it. */
export function userResource(user: User): object {
  return {
    id: user.id,
    organization_id: user.organizationId,
    display_name: user.displayName,
    email: user.email,
    image_url: user.imageUrl,
    is_active: user.deactivatedAt === null,
    deactivated_at: user.deactivatedAt,
    created_at: user.createdAt,
    modified: user.modified,
  };
}
