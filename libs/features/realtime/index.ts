/**
 * Realtime: what happens in a channel, told to whoever listens. Here is what stands beside the sockets: the
 * frames of the protocol, tickets, and who may listen.
 */
export { asyncApiDocument, asyncApiRoute } from './asyncapi.ts';
export type { DescribedProtocol } from './asyncapi.ts';
export { clientFrame, decodeClientFrame, encodeFrame, PING, PONG, serverFrame } from './frames.schemas.ts';
export type { ClientFrame, ErrorDetail, Include, ServerFrame } from './frames.schemas.ts';
export { eventStreamRoutes } from './event-stream.routes.ts';
export { KeyedListenerAccess, listenerGrant } from './listener-access.ts';
export type { ListenedChannels } from './listener-access.ts';
export { CANCEL_RUN, FeatureLiveCommands } from './live-commands.ts';
export { JoinedLiveValues } from './live-values.ts';
export * from './protocol.ts';
export type {
  AccessChange,
  ChannelLog,
  Grant,
  ListenerAccess,
  LiveCommand,
  LiveCommandOutcome,
  LiveCommands,
  LiveValue,
  LiveValues,
  PublishedHeads,
  Tickets,
} from './realtime.ports.ts';
export { RealtimeNode } from './realtime-node.ts';
export type { RealtimePorts } from './realtime-node.ts';
export { RedisTickets, TICKET_TTL_MS } from './tickets.ts';
export { ticketRoutes } from './tickets.routes.ts';
export { StoredChannelLog } from './channel-log.ts';
export type { ChannelEvents } from './channel-log.ts';
export { Typing, TYPING_TTL_MS } from './typing.ts';
export { WebsocketAdmission } from './websocket-admission.ts';
