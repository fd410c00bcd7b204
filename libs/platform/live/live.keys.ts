import type { EntityId } from '#libs/kernel/ids.ts';

/**
 * The topic (of sharded publish and subscribe) on which a channel's news are told. In the slot of the
 * channel's read model, so that what writes that can publish at the same time.
 */
export function liveTopic(organizationId: EntityId, channelId: EntityId): string {
  return `parley:live:{${organizationId}:${channelId}}:topic`;
}
