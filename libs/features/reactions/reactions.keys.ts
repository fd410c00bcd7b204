import { CHANNEL } from '#libs/features/channels/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { entityKeys } from '#libs/platform/readmodel/index.ts';
import type { EntityKeys } from '#libs/platform/readmodel/index.ts';

import type { Reactor } from './reaction.events.ts';

/** Keys of what is added to the interactions of one channel, all in the channel's slot. */
export interface ReactionKeys {
  /** Sorted set: all marks (see reactions.marks.ts), scored by the sequence of their interaction. */
  readonly marks: string;
  /** Sorted set: the reactions that were taken back, likewise. Readers of the past need them. */
  readonly withdrawn: string;
  /** Hash: what is asked for by name, see {@link reactionField} and the ones below it. */
  readonly known: string;
}

export function reactionKeys(organizationId: EntityId, channelId: EntityId): ReactionKeys {
  return reactionKeysOf(entityKeys(CHANNEL, organizationId, channelId));
}

/** @param channel the keys of the channel that the interactions are in */
export function reactionKeysOf(channel: EntityKeys): ReactionKeys {
  const prefix = channel.revision.slice(0, -'revision'.length);
  return { marks: `${prefix}marks`, withdrawn: `${prefix}marks:withdrawn`, known: `${prefix}marks:known` };
}

type AnySequence = ChannelSequence | number;

export function reactionField(sequence: AnySequence, { type, id }: Omit<Reactor, 'name'>, emoji: string): string {
  return `${sequence} ${type} ${id} ${emoji}`;
}

export function receiptField(sequence: AnySequence, agentId: string): string {
  return `${sequence} receipt ${agentId}`;
}

export function dismissalField(sequence: AnySequence): string {
  return `${sequence} dismissal`;
}

/** There once an interaction has got its first mark, and from then on. */
export function markedField(sequence: AnySequence): string {
  return `${sequence} marked`;
}
