/** Channels: where users and agents meet. One stream, `channel-<id>`, holds all that happens in one. */
import type { CommandRunner } from '#libs/platform/commands/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { withFrames } from '#libs/platform/readmodel/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { participantRoutes } from './channel-participants.routes.ts';
import type { ChannelState } from './channel.decider.ts';
import type { ChannelEvent } from './channel.events.ts';
import { ChannelCommands } from './channels.commands.ts';
import type { ChannelInteractions } from './channels.commands.ts';
import { channelFrame } from './channels.frames.ts';
import type { UserDirectory } from './channels.inputs.ts';
import { channelEventTypes } from './channels.live.ts';
import { channelProjection } from './channels.projection.ts';
import { publicChannelEvents } from './channels.public.ts';
import { ChannelQueries } from './channels.queries.ts';
import { channelRoutes } from './channels.routes.ts';

export type { ChannelState } from './channel.decider.ts';
export { CHANNEL, CHANNEL_READ_MODEL } from './channel.events.ts';
export type { ChannelEvent } from './channel.events.ts';
export { ChannelCommands } from './channels.commands.ts';
export type { ChannelInteractions } from './channels.commands.ts';
export { channelToCreate } from './channels.inputs.ts';
export type { UserDirectory } from './channels.inputs.ts';
export { channelProjection } from './channels.projection.ts';
export { channelBefore, ChannelQueries } from './channels.queries.ts';
export { createChannelBody } from './channels.schemas.ts';
export type { CreateChannelBody } from './channels.schemas.ts';

interface ChannelsDeps {
  /** Runs all commands of channels in this process. */
  readonly runner: CommandRunner<ChannelState, ChannelEvent>;
  readonly interactions: ChannelInteractions;
  readonly users: UserDirectory;
}

export const channelsModule = {
  name: 'channels',
  partOfChannel: withFrames(channelProjection, channelFrame),
  publicEvents: publicChannelEvents,
  liveEvents: channelEventTypes,
  create({ reader, history }: Core, { runner, interactions, users }: ChannelsDeps) {
    const commands = new ChannelCommands(runner, interactions);
    const queries = new ChannelQueries(reader, history);
    return {
      commands,
      queries,
      routes(app: HttpApp) {
        channelRoutes(app, { commands, queries, users });
        participantRoutes(app, { commands, queries, users });
      },
    };
  },
} satisfies Module;
