import type { EntityId } from '#libs/kernel/ids.ts';
import { listKeys } from '#libs/platform/readmodel/index.ts';
import type { ListKeys } from '#libs/platform/readmodel/index.ts';

import { KEY } from './key.events.ts';

/** Pub/sub channel on which changes of keys are announced to every process. */
export const KEY_CHANGES_CHANNEL = 'parley:key-changes:v1';

/** The keys of one organization. */
export function keyListKeys(organizationId: EntityId): ListKeys {
  return listKeys(KEY, organizationId);
}
