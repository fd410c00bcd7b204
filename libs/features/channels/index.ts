/** Channels of users and agents. The stream `channel-<id>` holds all events of one. */
import type { CommandRunner } from '#libs/platform/commands/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { withFrames } from '#libs/platform/readmodel/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { channelRoutes } from './channel.http.ts';
import type { Directories } from './channel.inputs.ts';
import { channelEventTypes, channelFrame, publicChannelEvents } from './channel.live.ts';
import { channelEntity, Channels, type ChannelInteractions } from './channel.read.ts';
import type { ChannelEvent, ChannelState } from './channel.ts';

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

interface ChannelsDeps extends Directories {
  /** Runs all commands of channels in this process. */
  readonly runner: CommandRunner<ChannelState, ChannelEvent>;
  readonly interactions: ChannelInteractions;
}

export const channelsModule = {
  name: 'channels',
  partOfChannel: withFrames(channelEntity.projection, channelFrame),
  publicEvents: publicChannelEvents,
  liveEvents: channelEventTypes,
  create(core: Core, { runner, interactions, ...directories }: ChannelsDeps) {
    const channels = new Channels(core, runner, interactions);
    return { channels, routes: (app: HttpApp) => channelRoutes(app, { channels, directories }) };
  },
} satisfies Module;
