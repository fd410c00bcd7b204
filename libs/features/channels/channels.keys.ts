import type { EntityId } from '#libs/kernel/ids.ts';
import { listKeys } from '#libs/platform/readmodel/index.ts';
import type { ListKeys } from '#libs/platform/readmodel/index.ts';

import { CHANNEL } from './channel.events.ts';

/** The channels of one organization. */
export function channelListKeys(organizationId: EntityId): ListKeys {
  return listKeys(CHANNEL, organizationId);
}
