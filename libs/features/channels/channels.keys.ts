import type { EntityId } from '#libs/kernel/ids.ts';
import { entityKeys, listKeys } from '#libs/platform/readmodel/index.ts';
import type { EntityKeys, ListKeys } from '#libs/platform/readmodel/index.ts';

import { CHANNEL } from './channel.events.ts';

export function channelKeys(organizationId: EntityId, id: EntityId): EntityKeys {
  return entityKeys(CHANNEL, organizationId, id);
}

/** The channels of one organization. */
export function channelListKeys(organizationId: EntityId): ListKeys {
  return listKeys(CHANNEL, organizationId);
}
