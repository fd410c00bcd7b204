import { CHANNEL_READ_MODEL } from '../../channel/channel.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { entityKeys, type EntityKeys } from '#libs/platform/readmodel/index.ts';

/** Facets that a channel's interactions can be listed by. */
export type InteractionFacet = 'all' | 'incomplete' | `role=${string}` | `turn=${string}`;

/** Keys of the interactions of one channel. All are in the channel's slot and reflect the channel's revision. */
export type InteractionKeys = ReturnType<typeof interactionKeysOf>;

export function interactionKeys(organizationId: EntityId, channelId: EntityId): InteractionKeys {
  return interactionKeysOf(entityKeys(CHANNEL_READ_MODEL, organizationId, channelId));
}

export function interactionKeysOf(channel: EntityKeys) {
  const prefix = channel.revision.slice(0, -'revision'.length);
  return {
    /**
     * Hash: sequence -> the interaction as the API returns it; as it was posted while it is incomplete. Reactions add
     * fields of other names.
     */
    documents: `${prefix}interactions`,
    /** String, while an interaction is incomplete: the interaction as the API returns it. */
    open: (sequence: number | string) => `${prefix}open:${sequence}`,
    /** Hash: span id -> depth and turn, see `encodeSpan`. */
    spans: `${prefix}spans`,
    /** Sorted set, all scores 0: `<parent span id> <sequence, 12 digits>`. */
    children: `${prefix}children`,
    /** Sorted set: revision (12 digits) of each event that changed an interaction, scored by its sequence. */
    changes: `${prefix}changes`,
    /** Sorted set: the sequences of the interactions with a facet, scored by themselves. */
    index: (facet: InteractionFacet) => `${prefix}sequences:${facet}`,
  } as const;
}

/**
 * Keys of the drafts of a channel, in the channel's slot. They are not part of the read models: drafts are ephemeral.
 * `lengths` is a hash: sequence -> '<length in UTF-16 code units> <flags>'. The key of a text is the prefix and its sequence.
 */
export function draftKeys(organizationId: EntityId, channelId: EntityId) {
  const prefix = `parley:drafts:{${organizationId}:${channelId}}:`;
  return { lengths: `${prefix}lengths`, textPrefix: `${prefix}text:` };
}
