/** Events of a channel. Entities have the form of the REST API, in their state after the event. */
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
  /** Role of the sender of the message that the reaction is about. */
  readonly target_role: 'user' | 'assistant';
  readonly target_sender_id: string | null;
}

export interface EventData {
  readonly 'channel.created': Channel;
  readonly 'channel.updated': Channel;
  readonly 'channel.archived': Channel;
  readonly 'participant.joined': ChannelParticipant & { readonly participant_id: string };
  readonly 'participant.left': ChannelParticipant & { readonly participant_id: string };
  readonly 'interaction.posted': Interaction;
  /** Content was added to an incomplete interaction. */
  readonly 'interaction.updated': Interaction;
  readonly 'interaction.completed': Interaction;
  readonly 'interaction.failed': Interaction;
  readonly 'reaction.added': ReactionChange;
  readonly 'reaction.removed': ReactionChange;
  readonly 'receipt.added': Schemas['AgentReadReceipt'];
  readonly 'mention_invite_prompt.dismissed': { readonly interaction_id: string; readonly user_id: string };
  /** The server does not know the type of the event, which a newer version of Parley appended. */
  readonly unknown: never;
}

export type EventType = keyof EventData;

/**
 * One durable event of a channel. `data` is null for events that `include` leaves out, so sequences are contiguous. A
 * newer server may send types that are not listed here.
 */
export type ChannelEvent = {
  readonly [Type in EventType]: {
    /** One more than that of the previous event. */
    readonly seq: number;
    readonly type: Type;
    /** RFC 3339. */
    readonly at: string;
    readonly data: EventData[Type] | null;
  };
}[EventType];

export function asEvent({ seq, type, at, data }: EventFrame): ChannelEvent {
  // These are the server's types; further types of a newer server match no `case`.
  return { seq, type, at, data } as ChannelEvent;
}
