import type { EntityId } from '#libs/kernel/ids.ts';

/**
 * The topic (of sharded pub/sub) of a channel's frames. In the slot of the channel's read model, so that a function that
 * writes the read model can publish in the same call.
 */
export function liveTopic(organizationId: EntityId, channelId: EntityId): string {
  return `parley:live:{${organizationId}:${channelId}}:topic`;
}

/** Keys of a channel's values of one kind, in the slot of its topic. */
export function ephemeralKeys(
  kind: string,
  organizationId: EntityId,
  channelId: EntityId,
): { readonly values: string; readonly expiry: string; readonly topic: string } {
  const prefix = `parley:live:{${organizationId}:${channelId}}:${kind}:`;
  return { values: `${prefix}values`, expiry: `${prefix}expiry`, topic: liveTopic(organizationId, channelId) };
}
