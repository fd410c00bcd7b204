/** Frames of events and of ephemeral values, their transport between processes, and messages for other teams. */
export { endsOf } from './entity-watch.ts';
export { EphemeralValues } from './ephemeral-values.ts';
export {
  deltaJson,
  draftKey,
  eventFrame,
  FRAME_FLAG,
  frameType,
  snapshotJson,
  UNKNOWN_EVENT,
  withoutData,
} from './frames.ts';
export type { EventContent, EventDescription, EventFrame, LiveValue, LiveValues } from './frames.ts';
export { decodeLiveMessage, encodeEvent, encodeHead, encodeValue, joinLines } from './live-message.ts';
export { channelTopic, entityTopic } from './live.keys.ts';
export { PUBLIC_TYPE_PREFIX, publicEvents, publicMessageHeaders, PublicMessages } from './public-events.ts';
export type { PublicEvents } from './public-events.ts';
