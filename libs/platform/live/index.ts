/** What is told of channels as it happens: the frames of events, and how they travel between processes. */
export { eventFrame, FRAME_FLAG, UNKNOWN_EVENT, withoutData } from './event-frame.ts';
export type { EventFrame, EventFrameParts, ReadyJson } from './event-frame.ts';
export { decodeLiveMessage, encodeEvent, encodeHead, encodeValue, joinLines } from './live-message.ts';
export type { LiveItem } from './live-message.ts';
export { liveTopic } from './live.keys.ts';
