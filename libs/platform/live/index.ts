/**
 * What is told of channels as it happens: the frames of events and of values of the moment, how they travel
 * between processes, and what a socket may ask for.
 */
export { EphemeralValues } from './ephemeral-values.ts';
export type { EphemeralKind, EphemeralValue } from './ephemeral-values.ts';
export { eventFrame, FRAME_FLAG, UNKNOWN_EVENT, withoutData } from './event-frame.ts';
export type { EventFrame, EventFrameParts, ReadyJson } from './event-frame.ts';
export type { LiveEventType } from './live-event.ts';
export { decodeLiveMessage, encodeEvent, encodeHead, encodeValue, joinLines } from './live-message.ts';
export type { LiveItem } from './live-message.ts';
export { liveTopic } from './live.keys.ts';
export { publicEvents } from './public-event.ts';
export type { PublicEvent, PublicEvents, PublicEventType } from './public-event.ts';
export { PUBLIC_TYPE_PREFIX, publicMessageHeaders, PublicMessages, UNKNOWN_PUBLIC_EVENT } from './public-messages.ts';
export type { PublicMessage, PublicMessagesParts } from './public-messages.ts';
export { deltaJson, draftKey, ephemeralJson, ephemeralValue, snapshotJson } from './value-frames.ts';
export type { LiveValue, LiveValues } from './value-frames.ts';
