import type { EntityId } from '#libs/kernel/ids.ts';
import { entityKeys, listKeys } from '#libs/platform/readmodel/index.ts';
import type { EntityKeys, ListKeys } from '#libs/platform/readmodel/index.ts';

import { ORGANIZATION } from './organization.events.ts';

/** An organization belongs to itself. */
export function organizationKeys(id: EntityId): EntityKeys {
  return entityKeys(ORGANIZATION, id, id);
}

/** All organizations: the one list that crosses them, for callers with the scope `platform`. */
export const ORGANIZATION_LIST: ListKeys = listKeys(ORGANIZATION, 'all');
