import type { z } from 'zod';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';

/** Properties of a frame that are used without parsing it; a bit mask. */
export const FRAME_FLAG = {
  nested: 1,
  /** An interaction that is not complete after the event. */
  incomplete: 2,
  /** An ephemeral value, which may be dropped. */
  ephemeral: 4,
  /** An event that changes who may subscribe to the channel. */
  access: 8,
  /** The last event of the channel or entity: its subscribers are closed after it. */
  last: 16,
} as const;

/** Type of the frames of events that this version does not know. */
export const UNKNOWN_EVENT = 'unknown';

/** A type of event that clients or other teams receive; its feature declares it. */
export interface EventDescription {
  /** Such as `interaction.posted`. */
  readonly type: string;
  readonly summary: string;
  readonly data: z.ZodType;
}

/** The frame of one event of a channel, ready to send. */
export interface EventFrame {
  readonly sequence: ChannelSequence;
  /** A mask of `FRAME_FLAG`. */
  readonly flags: number;
  /** JSON text of the whole frame, on one line. */
  readonly json: string;
}

/** The content that a feature publishes for one of its events, in a frame or in a message for other teams. */
export interface EventContent {
  readonly type: string;
  /** JSON text of the data, on one line; in a frame: the changed resource after the event. */
  readonly json: string;
  /** A mask of `FRAME_FLAG`, for a frame. Default: none. */
  readonly flags?: number;
}

const DATA = ',"data":';

/**
 * Deterministic: published frames and frames from the log must have the same bytes.
 *
 * @param at time of the event, RFC 3339
 */
export function eventFrame(sequence: ChannelSequence, at: string, { type, json, flags = 0 }: EventContent): EventFrame {
  const head = `{"frame":"event","seq":${sequence},"type":${JSON.stringify(type)},"at":${JSON.stringify(at)}`;
  return { sequence, flags, json: `${head}${DATA}${json}}` };
}

/** The type of an event's frame, from its JSON. */
export function frameType(json: string): string {
  return /^\{"frame":"event","seq":\d+,"type":"([^"\\]*)"/.exec(json)?.[1] ?? UNKNOWN_EVENT;
}

/** The frame with `"data":null`, for subscribers that do not include it: keeps the sequence contiguous. */
export function withoutData(json: string): string {
  // Only strings and a number precede the member, and quotes in a string are escaped.
  return `${json.slice(0, json.indexOf(DATA))}${DATA}null}`;
}

/** A frame that is not in the log: it may be dropped, and is replaced by a newer one with the same key. */
export interface LiveValue {
  /** A mask of `FRAME_FLAG`: sent to subscribers that include all of them. */
  readonly flags: number;
  /** Without spaces and line breaks. */
  readonly key: string;
  /** JSON text of the whole frame, on one line. */
  readonly json: string;
}

/** Port: the current values of a channel, such as typing indicators. May omit some, but returns no outdated ones. */
export interface LiveValues {
  current(organizationId: EntityId, channelId: EntityId): Promise<readonly LiveValue[]>;
}

export const draftKey = (interactionId: string): string => `draft:${interactionId}`;

/** Text appended to the draft of an incomplete interaction. @param offset UTF-16 code units before it */
export function deltaJson(interactionId: string, offset: number, text: string): string {
  return JSON.stringify({ frame: 'delta', interaction_id: interactionId, offset, text });
}

/** The whole draft of an incomplete interaction. */
export function snapshotJson(interactionId: string, text: string): string {
  return JSON.stringify({ frame: 'snapshot', interaction_id: interactionId, text });
}
