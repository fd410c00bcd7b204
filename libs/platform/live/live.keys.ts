import type { EntityId } from '#libs/kernel/ids.ts';

/** The category of channels. Its topics have no category in their names: nodes of older versions follow them. */
const CHANNEL = 'channel';

/**
 * The topic (of sharded pub/sub) of an entity's frames. In the slot of the entity's read model, so that a function that
 * writes the read model can publish in the same call. Entities of several categories may have the same id, as an agent
 * and its inbox, or a run and the decision about it; each has a topic of its own.
 */
export function entityTopic(category: string, organizationId: EntityId, id: EntityId): string {
  const of = category === CHANNEL ? '' : `${category}:`;
  return `parley:live:{${organizationId}:${id}}:${of}topic`;
}

export function channelTopic(organizationId: EntityId, channelId: EntityId): string {
  return entityTopic(CHANNEL, organizationId, channelId);
}

/** Keys of a channel's values of one kind, in the slot of its topic. */
export function ephemeralKeys(
  kind: string,
  organizationId: EntityId,
  channelId: EntityId,
): { readonly values: string; readonly expiry: string; readonly topic: string } {
  const prefix = `parley:live:{${organizationId}:${channelId}}:${kind}:`;
  return { values: `${prefix}values`, expiry: `${prefix}expiry`, topic: channelTopic(organizationId, channelId) };
}
