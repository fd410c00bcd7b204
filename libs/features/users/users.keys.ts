import type { EntityId } from '#libs/kernel/ids.ts';
import { listKeys } from '#libs/platform/readmodel/index.ts';
import type { ListKeys } from '#libs/platform/readmodel/index.ts';

import { USER } from './user.events.ts';

/** The users of one organization. */
export function userListKeys(organizationId: EntityId): ListKeys {
  return listKeys(USER, organizationId);
}
