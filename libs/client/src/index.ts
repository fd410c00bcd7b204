/** The client of Parley; `README.md` beside `src` shows how to use it. */
export { ChannelHandle, ParleyClient, type ClientOptions, type RestClient } from './client.ts';
export {
  ChannelSubscription,
  type SubscribeOptions,
  type SubscriptionEvents,
  type SubscriptionState,
} from './subscription.ts';
export { ChannelView, type ChannelSnapshot, type OpenOptions, type PendingMessage } from './view.ts';
export { type TokenSource } from './tokens.ts';
export { type LinkState } from './link.ts';
export { type Ticket, type TicketSource } from './tickets.ts';
export { type BackoffOptions } from './backoff.ts';
export { type QueueLimits } from './event-queue.ts';
export { type Draft, type Ephemeral } from './follower.ts';
export {
  type Acknowledgement,
  type CommandData,
  type CommandType,
  type ReactionCommand,
  type TypingCommand,
} from './commands.ts';
export {
  type Channel,
  type ChannelEvent,
  type ChannelParticipant,
  type EventActor,
  type EventData,
  type EventType,
  type Interaction,
  type ParticipantReadMarker,
  type ReactionChange,
  type ReadMarker,
} from './events.ts';
export {
  ApiError,
  CommandError,
  ParleyError,
  refusalOf,
  SubscriptionError,
  type SubscriptionErrorCode,
} from './errors.ts';
export { type WebSocketConstructor, type WebSocketLike } from './websocket.ts';
export { type Include, type Principal } from './frames.ts';
export type { components, operations, paths } from './api.generated.ts';
