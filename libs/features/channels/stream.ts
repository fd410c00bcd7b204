/*
 * The stream of a channel has the events of the channel itself, of its interactions, and of their marks: one revision
 * orders all that happens in it. They are decoded, folded, projected and shown here, each event by the part it belongs to.
 */
import type { Fold } from '#libs/kernel/decider.ts';
import { type DomainEvent, sequenceOf, type StreamEvent } from '#libs/kernel/event.ts';
import type { CommandHandler } from '#libs/platform/commands/index.ts';
import { composeCodecs, type EventCodec } from '#libs/platform/eventstore/index.ts';
import { type EventContent, type EventDescription, publicEvents } from '#libs/platform/live/index.ts';
import {
  type ProjectedEvent,
  type ProjectedWrites,
  type Projection,
  withFrames,
  withHistory,
  type WithHistory,
  type WriteOperation,
} from '#libs/platform/readmodel/index.ts';

import { channelEventTypes, channelFrame, channelMessage, channelMessageTypes } from './channel/channel.live.ts';
import { channelEntity } from './channel/channel.read.ts';
import { channelCodec, type ChannelEvent, channelFold } from './channel/channel.ts';
import { interactionCodec, type InteractionEvent } from './interaction/interaction.events.ts';
import {
  interactionEventTypes,
  interactionFrame,
  interactionMessage,
  interactionMessageTypes,
} from './interaction/interaction.live.ts';
import { type ChannelStream, interactionFold } from './interaction/interaction.ts';
import { openSequences } from './interaction/reads/past.ts';
import { interactionWrites, storedInteractions } from './interaction/reads/projection.ts';
import { CHANNEL_READ_MODEL, type ChannelKeys, channelKeysOf, joinedField } from './channel.keys.ts';
import { reactionEventTypes, reactionFrame } from './reaction/reaction.live.ts';
import { reactionWrites } from './reaction/reaction.read.ts';
import { reactionCodec, type ReactionEvent } from './reaction/reaction.ts';

export type ChannelStreamEvent = ChannelEvent | InteractionEvent | ReactionEvent;

/** Runs every command in a channel of this process. */
export type ChannelHandler = CommandHandler<WithHistory<ChannelStream>, ChannelStreamEvent>;

const streamCodec = composeCodecs<ChannelStreamEvent>([channelCodec, interactionCodec, reactionCodec]);

const isOf =
  <E extends DomainEvent>({ types }: EventCodec<E>) =>
  (event: StreamEvent): event is StreamEvent<E> =>
    types.has(event.type);
export const isChannelEvent = isOf(channelCodec);
export const isInteractionEvent = isOf(interactionCodec);
const isReactionEvent = isOf(reactionCodec);

const streamFold: Fold<ChannelStream, ChannelStreamEvent> = {
  initialState: { channel: channelFold.initialState, interactions: interactionFold.initialState },
  // The same object for an event that changes nothing, as most do.
  evolve(state, event) {
    if (isInteractionEvent(event)) {
      const interactions = interactionFold.evolve(state.interactions, event);
      return interactions === state.interactions ? state : { ...state, interactions };
    }
    if (!isChannelEvent(event)) return state;
    const channel = channelFold.evolve(state.channel, event);
    return channel === state.channel ? state : { ...state, channel };
  },
};

const NO_WRITES: ProjectedWrites = { operations: [], lists: [] };

/** Makes a frame for each event. The entry of a channel in lists has the revision of its own last event. */
export const channelFrames: Projection<ChannelStream, ChannelStreamEvent> = withFrames(
  {
    ...CHANNEL_READ_MODEL,
    parts: ['channel', 'interactions'],
    storedParts: { interactions: storedInteractions },
    codec: streamCodec,
    fold: streamFold,
    project({ organizationId, id, before, after, events, isRepair }, keys) {
      const own = {
        organizationId,
        id,
        before: before.channel,
        after: after.channel,
        events: events.filter(isChannelEvent),
      };
      // Posts leave the channel's document and its entry in the list as they are.
      const isWritten = own.events.length > 0 || isRepair === true;
      const { operations, lists } = isWritten ? channelEntity.projection.project(own, keys) : NO_WRITES;
      const owner = { organizationId, channelId: id };
      const channelKeys = channelKeysOf(keys);
      return {
        operations: [
          ...operations,
          ...interactionWrites(events.filter(isInteractionEvent), before.interactions, owner, channelKeys),
          ...reactionWrites(events.filter(isReactionEvent), channelKeys),
          ...joinWrites(own.events, channelKeys),
        ],
        lists,
      };
    },
  },
  frameOf,
);

/** Messages before a user was added are not unread for it. */
function joinWrites(events: readonly StreamEvent<ChannelEvent>[], { read }: ChannelKeys): WriteOperation[] {
  return events.flatMap((event): WriteOperation[] => {
    if (event.type !== 'ParticipantAdded.v1' || event.data.participant.type !== 'authenticated_user') return [];
    const field = joinedField(event.data.participant.userId);
    return [{ command: 'HSET', key: read, args: [field, sequenceOf(event.revision)] }];
  });
}

function frameOf({
  organizationId,
  id,
  before,
  after,
  event,
}: ProjectedEvent<ChannelStream, ChannelStreamEvent>): EventContent {
  if (isInteractionEvent(event)) return interactionFrame(event, before.interactions, { organizationId, channelId: id });
  if (isChannelEvent(event)) return channelFrame(event, before.channel, after.channel);
  return reactionFrame(event, id);
}

/** How channels become read models. The history keeps the states that reads of the past and replays start from. */
export const channelProjection = withHistory(channelFrames, {
  channel: ({ channel }) => channel,
  open: ({ interactions }) => openSequences(interactions),
});

/** The types of frames. */
export const channelFrameTypes: readonly EventDescription[] = [
  ...channelEventTypes,
  ...interactionEventTypes,
  ...reactionEventTypes,
];

/** Events as Kafka publishes them. */
export const publicChannelEvents = publicEvents({
  codec: streamCodec,
  described: [...channelMessageTypes, ...interactionMessageTypes, ...reactionEventTypes],
  publish(event, id): EventContent {
    if (isInteractionEvent(event)) return interactionMessage(event, id);
    return isChannelEvent(event) ? channelMessage(event, id) : reactionFrame(event, id);
  },
});
