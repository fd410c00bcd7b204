/** What happens in a channel. Things are shown as REST shows them, in their state after the event. */
import type { components } from './api.generated.ts';
import type { EventFrame } from './frames.ts';

type Schemas = components['schemas'];

export type Channel = Schemas['Channel'];
export type Interaction = Schemas['Interaction'];
export type ChannelParticipant = Schemas['ChannelParticipant'];

export interface ReactionChange {
  readonly interaction_id: string;
  readonly emoji: string;
  readonly reactor: { readonly type: 'user' | 'agent'; readonly id: string; readonly name: string | null };
  /** Of the message that was reacted to. */
  readonly target_role: 'user' | 'assistant';
  readonly target_sender_id: string | null;
}

/** `data` of each type of event. */
export interface EventData {
  readonly 'channel.created': Channel;
  readonly 'channel.updated': Channel;
  readonly 'channel.archived': Channel;
  readonly 'participant.joined': ChannelParticipant & { readonly participant_id: string };
  readonly 'participant.left': ChannelParticipant & { readonly participant_id: string };
  readonly 'interaction.posted': Interaction;
  /** Content was added to one that is not complete. */
  readonly 'interaction.updated': Interaction;
  readonly 'interaction.completed': Interaction;
  readonly 'interaction.failed': Interaction;
  readonly 'reaction.added': ReactionChange;
  readonly 'reaction.removed': ReactionChange;
  readonly 'receipt.added': Schemas['AgentReadReceipt'];
  readonly 'mention_invite_prompt.dismissed': { readonly interaction_id: string; readonly user_id: string };
  /** Newer than the server: only that something happened is known. */
  readonly unknown: never;
}

export type EventType = keyof EventData;

/**
 * One durable event of a channel. `data` is null where the subscription has not included what it is about, so that
 * sequences are contiguous all the same. A newer server may send types that are not listed here.
 */
export type ChannelEvent = {
  readonly [Type in EventType]: {
    /** One more than that of the event before it. */
    readonly seq: number;
    readonly type: Type;
    /** RFC 3339. */
    readonly at: string;
    readonly data: EventData[Type] | null;
  };
}[EventType];

export function asEvent({ seq, type, at, data }: EventFrame): ChannelEvent {
  // The server's types and these are the same ones; a newer server's further ones fall through every `switch`.
  return { seq, type, at, data } as ChannelEvent;
}
