/** Channels of users and agents. The stream `channel-<id>` holds all events of one. */
import { withFrames } from '#libs/platform/readmodel/index.ts';
import type { Module } from '#libs/platform/runtime/index.ts';

import { channelEventTypes, channelFrame, publicChannelEvents } from './channel.live.ts';
import { channelEntity } from './channel.read.ts';

export { channelRoutes } from './channel.http.ts';
export { channelToCreate, type Directories } from './channel.inputs.ts';
export {
  channelBefore,
  channelEntity,
  Channels,
  type ChannelInteractions,
  type ChannelResult,
} from './channel.read.ts';
export { createChannelBody, organizationSummary, type CreateChannelBody } from './channel.schemas.ts';
export { CHANNEL, CHANNEL_READ_MODEL, type ChannelCreated, type ChannelEvent, type ChannelState } from './channel.ts';

export const channelsModule = {
  name: 'channels',
  partOfChannel: withFrames(channelEntity.projection, channelFrame),
  publicEvents: publicChannelEvents,
  liveEvents: channelEventTypes,
} satisfies Module;
