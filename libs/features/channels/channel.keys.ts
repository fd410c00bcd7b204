/** The names under which streams and Redis hold channels. All keys of one channel are in one slot. */
import type { EntityId } from '#libs/kernel/ids.ts';
import { entityKeys, type EntityKeys } from '#libs/platform/readmodel/index.ts';

/** Category of the streams: `channel-<id>` contains all events of a channel. */
export const CHANNEL = 'channel';

/** Raise the version when the shape of what is stored of a channel changes: this rebuilds the read models of all channels. */
export const CHANNEL_READ_MODEL = { category: CHANNEL, version: 7 } as const;

/** Facets that a channel's interactions can be listed by. */
export type InteractionFacet = 'all' | 'incomplete' | `role=${string}` | `turn=${string}`;

/** Keys of the interactions of one channel and their marks, which reflect the channel's revision. */
export type ChannelKeys = ReturnType<typeof channelKeysOf>;

export function channelKeys(organizationId: EntityId, channelId: EntityId): ChannelKeys {
  return channelKeysOf(entityKeys(CHANNEL_READ_MODEL, organizationId, channelId));
}

export function channelKeysOf({ revision }: EntityKeys) {
  const prefix = revision.slice(0, -'revision'.length);
  return {
    revision,
    /**
     * Hash: sequence -> the interaction as the API returns it; as it was posted while it is incomplete. Marks add the
     * fields of `markedField`.
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
    /** Sorted set: the sequences of deleted interactions, scored by themselves. */
    deleted: `${prefix}sequences:deleted`,
    /** Sorted set: the sequences of the interactions with a facet, scored by themselves. */
    index: (facet: InteractionFacet) => `${prefix}sequences:${facet}`,
    /**
     * Sorted set: the sequences of the complete messages of users and agents that were not deleted, scored by the sequence
     * of the event that completed them.
     */
    messages: `${prefix}messages`,
    /** Hash: id of a user -> sequence that its last message was completed at; see also {@link joinedField}. */
    read: `${prefix}read`,
    /** Sorted set: all marks, scored by the sequence of their interaction. */
    marks: `${prefix}marks`,
    /** Sorted set: removed reactions, scored likewise, for reads of the past. */
    withdrawnMarks: `${prefix}marks:withdrawn`,
    /** Hash: values that commands look up, by `reactionField`, `receiptField` and `dismissalField`. */
    knownMarks: `${prefix}marks:known`,
  } as const;
}

/** Field in the hash `read`: the sequence at which a user was added to a channel that existed. No id contains a space. */
export const joinedField = (userId: EntityId): string => `${userId} joined`;

/**
 * Keys of the drafts of a channel, in the channel's slot. They are not part of the read models: drafts are ephemeral.
 * `lengths` is a hash: sequence -> '<length in UTF-16 code units> <flags>'. The key of a text is the prefix and its sequence.
 */
export function draftKeys(organizationId: EntityId, channelId: EntityId) {
  const prefix = `parley:drafts:{${organizationId}:${channelId}}:`;
  return { lengths: `${prefix}lengths`, textPrefix: `${prefix}text:` };
}
