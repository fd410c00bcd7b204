import { CHANNEL } from '#libs/features/channels/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { entityKeys } from '#libs/platform/readmodel/index.ts';
import type { EntityKeys } from '#libs/platform/readmodel/index.ts';

/** Keys of the interactions of one channel, all in the channel's slot. */
export interface InteractionKeys {
  /** The channel's revision: all of these keys reflect it. */
  readonly revision: string;
  /** Hash: sequence -> the interaction as REST answers it. */
  readonly documents: string;
  /** Hash: span id -> what is known of the span, see `encodeSpan`. */
  readonly spans: string;
  /** Sorted set, all scores 0: `<parent span id> <sequence, 12 digits>`: the tree, downwards. */
  readonly children: string;
  /** Sorted set: revision (12 digits) of each event that changed an interaction, by the interaction's sequence. */
  readonly changes: string;
  /** Sorted set: sequence by sequence, of those interactions that have a facet. */
  index(facet: InteractionFacet): string;
}

/** What a channel's interactions can be listed by. */
export type InteractionFacet = 'all' | 'incomplete' | `role=${string}` | `turn=${string}`;

export function interactionKeys(organizationId: EntityId, channelId: EntityId): InteractionKeys {
  return interactionKeysOf(entityKeys(CHANNEL, organizationId, channelId));
}

/** @param channel the keys of the channel that the interactions are in */
export function interactionKeysOf(channel: EntityKeys): InteractionKeys {
  const prefix = channel.revision.slice(0, -'revision'.length);
  return {
    revision: channel.revision,
    documents: `${prefix}interactions`,
    spans: `${prefix}spans`,
    children: `${prefix}children`,
    changes: `${prefix}changes`,
    index: (facet) => `${prefix}sequences:${facet}`,
  };
}

/** Keys of the texts of those interactions of a channel that are being written, in the channel's slot. */
export interface DraftKeys {
  /** Hash: sequence -> '<length in UTF-16 code units> <flags>'. */
  readonly lengths: string;
  /** What the keys of the texts begin with; the sequence follows. */
  readonly textPrefix: string;
}

/** No part of the read models: nothing that was promised is lost with them. */
export function draftKeys(organizationId: EntityId, channelId: EntityId): DraftKeys {
  const prefix = `parley:drafts:{${organizationId}:${channelId}}:`;
  return { lengths: `${prefix}lengths`, textPrefix: `${prefix}text:` };
}
