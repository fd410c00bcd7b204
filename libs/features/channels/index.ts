/** Channels of users and agents. The stream `channel-<id>` holds all events of one: of itself, its interactions, and their reactions. */
import { withFrames } from '#libs/platform/readmodel/index.ts';
import type { Module } from '#libs/platform/runtime/index.ts';

import { channelEventTypes, channelFrame, publicChannelEvents } from './channel/channel.live.ts';
import { channelEntity } from './channel/channel.read.ts';

export { ChannelAccess } from './access.ts';
export { channelRoutes } from './channel/channel.http.ts';
export { channelToCreate, type Directories } from './channel/channel.inputs.ts';
export {
  channelBefore,
  channelEntity,
  Channels,
  type ChannelInteractions,
  type ChannelResult,
} from './channel/channel.read.ts';
export { createChannelBody, organizationSummary, type CreateChannelBody } from './channel/channel.schemas.ts';
export {
  CHANNEL,
  CHANNEL_READ_MODEL,
  type ChannelCreated,
  type ChannelEvent,
  type ChannelState,
} from './channel/channel.ts';
export { createInteractions, interactionsModule } from './interaction/module.ts';
export { InteractionCommands, type InteractionResult, type PostResult } from './interaction/interaction.commands.ts';
export { sendChanged } from './interaction/interaction.http.ts';
export {
  type FinalDetails,
  interactionCodec,
  type InteractionEvent,
  type InteractionPosted,
} from './interaction/interaction.events.ts';
export { interactionId, type InteractionRef, parseInteractionId } from './interaction/interaction.id.ts';
export {
  type InteractionDirectory,
  interactionToPost,
  requireInteractionRef,
} from './interaction/interaction.requests.ts';
export {
  interactionParams,
  interactionSchema,
  type PostInteractionBody,
  postInteractionBody,
  readReceiptSchema,
} from './interaction/interaction.schemas.ts';
export { Drafts } from './interaction/drafts.ts';
export { openBefore, openSequences } from './interaction/reads/past.ts';
export { readerOf } from './interaction/reads/present.ts';
export { InteractionQueries } from './interaction/reads/queries.ts';
export { createReactions, reactionsModule } from './reaction/module.ts';
export type { ReactionCommands } from './reaction/reaction.commands.ts';
export { ReactionAnnotations } from './reaction/reaction.read.ts';
export type { Reactor } from './reaction/reaction.ts';

export const channelsModule = {
  name: 'channels',
  partOfChannel: withFrames(channelEntity.projection, channelFrame),
  publicEvents: publicChannelEvents,
  liveEvents: channelEventTypes,
} satisfies Module;
