/**
 * Channels of users and agents, their interactions (messages, tool calls, notifications), and the marks on these
 * (reactions, read receipts, dismissals). The stream `channel-<id>` holds all events of one: see `stream.ts`.
 */
import type { LiveCommandType } from '#libs/platform/http/index.ts';
import type { Module } from '#libs/platform/runtime/index.ts';

import type { Channels } from './channels.ts';
import { interactionLiveCommands } from './interaction/interaction.http.ts';
import { reactionLiveCommands } from './reaction/reaction.http.ts';
import { readMarkerEntity } from './reading/read-marker.read.ts';
import { channelFrameTypes, channelProjection, publicChannelEvents } from './stream.ts';

export { ChannelAccess } from './access.ts';
export { channelRoutes } from './channel/channel.http.ts';
export { channelToCreate, type Directories } from './channel/channel.requests.ts';
export { createChannelBody, type CreateChannelBody } from './channel/channel.schemas.ts';
export type { ChannelCreated, ChannelEvent, ChannelState } from './channel/channel.ts';
export { Channels } from './channels.ts';
export type { Drafts } from './interaction/drafts.ts';
export {
  type FinalDetails,
  interactionCodec,
  type InteractionEvent,
  type InteractionPosted,
} from './interaction/interaction.events.ts';
export { interactionRoutes } from './interaction/interaction.http.ts';
export { interactionId, type InteractionRef, parseInteractionId } from './interaction/interaction.id.ts';
export { interactionToPost } from './interaction/interaction.requests.ts';
export type { PostResult } from './interaction/interaction.commands.ts';
export type { PastPost, PastPostResult } from './interaction/past-posts.ts';
export { interactionSchema, type PostInteractionBody, postInteractionBody } from './interaction/interaction.schemas.ts';
export type { InteractionQueries } from './interaction/reads/queries.ts';
export { interactionOf, type StoredInteraction } from './interaction/reads/resource.ts';
export { CHANNEL, CHANNEL_READ_MODEL } from './channel.keys.ts';
export { messageRoutes } from './interaction/message.http.ts';
export { readMarkerRoutes } from './reading/read-marker.http.ts';
export { ReadMarkers } from './reading/read-marker.read.ts';
export { MessageSearch } from './search/message-search.ts';
export { searchRoutes as messageSearchRoutes } from './search/search.http.ts';
export { reactionRoutes } from './reaction/reaction.http.ts';
export type { Reactor } from './reaction/reaction.ts';
export { channelProjection } from './stream.ts';

export const channelsModule = {
  name: 'channels',
  projections: [channelProjection, readMarkerEntity.projection],
  publicEvents: publicChannelEvents,
  liveEvents: channelFrameTypes,
} satisfies Module;

/** The commands that sockets send. */
export function channelLiveCommands(channels: Channels): readonly LiveCommandType[] {
  return [...interactionLiveCommands(channels), ...reactionLiveCommands(channels)];
}
