/** Channels: where users and agents meet. One stream, `channel-<id>`, holds all that happens in one. */
export { participantRoutes } from './channel-participants.routes.ts';
export type { ChannelState } from './channel.decider.ts';
export { CHANNEL } from './channel.events.ts';
export type { ChannelEvent } from './channel.events.ts';
export { ChannelCommands } from './channels.commands.ts';
export type { ChannelInteractions } from './channels.commands.ts';
export { channelToCreate } from './channels.inputs.ts';
export type { KnownUser, UserDirectory } from './channels.inputs.ts';
export { channelFrame } from './channels.frames.ts';
export { channelProjection } from './channels.projection.ts';
export { channelBefore, ChannelQueries } from './channels.queries.ts';
export { channelEventTypes } from './channels.live.ts';
export { publicChannelEvents } from './channels.public.ts';
export { channelRoutes } from './channels.routes.ts';
export { createChannelBody } from './channels.schemas.ts';
export type { CreateChannelBody } from './channels.schemas.ts';
