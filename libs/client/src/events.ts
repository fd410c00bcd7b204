/** Events of a channel. Entities have the form of the REST API, in their state after the event. */
import type { components } from './api.generated.ts';
import type { EventFrame } from './frames.ts';

type Schemas = components['schemas'];

export type Channel = Schemas['Channel'];
export type Interaction = Schemas['Interaction'];
export type ChannelParticipant = Schemas['ChannelParticipant'];
export type ParticipantReadMarker = Schemas['ParticipantReadMarker'];
export type ReadMarker = Schemas['ReadMarker'];

/** Who did it. */
export interface EventActor {
  readonly type: 'user' | 'service' | 'system';
  readonly id: string;
  readonly key_id: string | null;
  /** In whose name; null if in its own. */
  readonly on_behalf_of: { readonly type: 'user' | 'agent'; readonly id: string } | null;
}

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
  readonly 'file.deleted': {
    readonly channel_id: string;
    readonly media_id: string;
    readonly name: string;
    /** Of the content, in hex; null for an item without a file. */
    readonly sha256: string | null;
    readonly bytes: number;
    readonly interaction_id: string | null;
  };
  readonly 'interaction.posted': Interaction;
  /** Content was added to an incomplete interaction. */
  readonly 'interaction.updated': Interaction;
  readonly 'interaction.completed': Interaction;
  readonly 'interaction.failed': Interaction;
  readonly 'interaction.edited': Interaction;
  /** Without its content. Earlier events of it that are read later have null as data. */
  readonly 'interaction.deleted': Interaction;
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
    /** Null for an event of another application; absent from servers before this member existed. */
    readonly actor?: EventActor | null | undefined;
    /** Names of the members that `channel.updated` is about. */
    readonly changed?: readonly string[] | undefined;
    readonly data: EventData[Type] | null;
  };
}[EventType];

export function asEvent({ frame: _frame, ...event }: EventFrame): ChannelEvent {
  // These are the server's types; further types of a newer server match no `case`.
  return event as ChannelEvent;
}
