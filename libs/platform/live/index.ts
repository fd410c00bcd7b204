/** Frames of events and of ephemeral values, their transport between processes, and messages for other teams. */
export {
  type AccessChange,
  type ChannelGrant,
  type CheckedKey,
  earliest,
  type Grant,
  type LiveAccess,
} from './access.ts';
export { CLOSE, type CloseCode } from './close-codes.ts';
export { endsOf } from './entity-watch.ts';
export { EphemeralValues, sendToUser } from './ephemeral-values.ts';
export {
  deltaJson,
  draftKey,
  eventFrame,
  FRAME_FLAG,
  snapshotJson,
  UNKNOWN_EVENT,
  withoutData,
  representedBy,
  shownActor,
  type EventContent,
  type EventDescription,
  type EventFrame,
  type LiveValue,
  type LiveValues,
  type Represented,
  decodeLiveMessage,
  encodeEvent,
  encodeHead,
  encodeValue,
  joinLines,
} from './frames.ts';
export { EntityEventStream, EventStream } from './event-stream.ts';
export type { FramesOptions, FrameSource, LiveSource } from './frame-source.ts';
export { inOneLine, type LiveFrame } from './live-frame.ts';
export { LiveNode } from './live-node.ts';
export type { LiveStream, StreamRef } from './live-stream.ts';
export type { PublishedHeads } from './live-streams.ts';
export { HEARTBEAT_MS, Subscriber, TICK_MS } from './subscriber.ts';
export { channelTopic, entityTopic } from './live.keys.ts';
export { PUBLIC_TYPE_PREFIX, publicEvents, publicMessageHeaders, PublicMessages } from './public-events.ts';
export type { PublicEvents } from './public-events.ts';
