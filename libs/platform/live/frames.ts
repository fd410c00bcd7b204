import { z } from 'zod';
import type { Actor, ChannelSequence } from '#libs/kernel/event.ts';
import { type EntityId, ENTITY_ID } from '#libs/kernel/ids.ts';

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
  /** An event after which earlier frames are no longer sent as they were: the log has what remains of them. */
  erases: 32,
  /** An event that ends a text that was published while it was written: it must not overtake the text. */
  endsText: 64,
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
  /** In whose name the actor did it, as the event states it. Default: in its own. */
  readonly onBehalfOf?: Represented | null;
  /** Names of the members of the resource that the event has changed. Default: the type tells it. */
  readonly changed?: readonly string[];
}

/** A user or an agent in whose name a principal with the right to do so acts. */
export interface Represented {
  readonly type: 'user' | 'agent';
  readonly id: string;
}

/** @returns null for a user that acts itself */
export function representedBy(actor: Actor, represented: Represented): Represented | null {
  return actor.type === 'user' && represented.type === 'user' && actor.id === represented.id ? null : represented;
}

/** The actor of an event as frames name it. */
export const shownActor = z
  .object({
    type: z.enum(['user', 'service', 'system']).describe('`system`: Parley itself, such as a worker'),
    id: z.string(),
    key_id: z
      .string()
      .nullable()
      .describe(
        'The API key, or the issuer and the thumbprint of the key that verified a token; null for the system, and for events of before',
      ),
    on_behalf_of: z
      .object({ type: z.enum(['user', 'agent']), id: z.string() })
      .nullable()
      .describe('In whose name; null if in its own'),
  })
  .meta({ id: 'EventActor' });

const DATA = ',"data":';

/**
 * Deterministic: published frames and frames from the log must have the same bytes.
 *
 * @param at time of the event, RFC 3339
 * @param actor null for a foreign event
 */
export function eventFrame(
  sequence: ChannelSequence,
  { at, actor }: { readonly at: string; readonly actor: Actor | null },
  { type, json, flags = 0, onBehalfOf = null, changed }: EventContent,
): EventFrame {
  const head = `{"frame":"event","seq":${sequence},"type":${JSON.stringify(type)},"at":${JSON.stringify(at)}`;
  const by = actor && { type: actor.type, id: actor.id, key_id: actor.keyId ?? null, on_behalf_of: onBehalfOf };
  const fields = changed === undefined ? '' : `,"changed":${JSON.stringify(changed)}`;
  return { sequence, flags, json: `${head},"actor":${JSON.stringify(by)}${fields}${DATA}${json}}` };
}

/** The type of an event's frame, from its JSON. */
export function frameType(json: string): string {
  return /^\{"frame":"event","seq":\d+,"type":"([^"\\]*)"/.exec(json)?.[1] ?? UNKNOWN_EVENT;
}

/** The frame with `"data":null`, for subscribers that do not include it: keeps the sequence contiguous. */
export function withoutData(json: string): string {
  // No member before it is called `data`, and quotes in a string are escaped.
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

/*
 * Messages on a channel's topic: one or more lines, each in one of these forms:
 *
 *   E <sequence> <flags> <json>   the frame of a durable event
 *   H <sequence>                  head notice: the read model has reached this sequence; nodes fill gaps from the log
 *   X <flags> <key> <json>        a value that is not durable; a newer one with the same `key` replaces it
 *   U <user id> <flags> <json>    a value for the subscribers of one user
 *
 * JSON has no raw line breaks. Processes of several versions may share a topic: lines of an unknown form are skipped,
 * and a sequence that is missed because of that is read from the log.
 */

export type LiveItem =
  | { readonly kind: 'event'; readonly sequence: ChannelSequence; readonly flags: number; readonly json: Buffer }
  | { readonly kind: 'head'; readonly sequence: ChannelSequence }
  | { readonly kind: 'value'; readonly flags: number; readonly key: string; readonly json: Buffer }
  | { readonly kind: 'user value'; readonly userId: string; readonly flags: number; readonly json: Buffer };

export function encodeEvent({ sequence, flags, json }: EventFrame): string {
  return `E ${sequence} ${flags} ${json}`;
}

export function encodeHead(sequence: ChannelSequence): string {
  return `H ${sequence}`;
}

/**
 * @param value.key must have no spaces and no line breaks
 * @param value.json must be on one line
 */
export function encodeValue({ flags, key, json }: { flags: number; key: string; json: string }): string {
  if (/\s/.test(key) || key === '') throw new TypeError(`not a key of a live value: ${JSON.stringify(key)}`);
  return `X ${flags} ${key} ${json}`;
}

/** @param userId must have no spaces and no line breaks. @param value.json must be on one line */
export function encodeUserValue(userId: string, { flags, json }: { flags: number; json: string }): string {
  if (!ENTITY_ID.test(userId)) throw new TypeError(`not the id of a user: ${JSON.stringify(userId)}`);
  return `U ${userId} ${flags} ${json}`;
}

export function joinLines(lines: readonly string[]): string {
  return lines.join('\n');
}

const NEWLINE = 0x0a;
const SPACE = 0x20;
const NUMBER = /^\d{1,16}$/;

/** The items of a message, in order. Their JSON shares the memory of the message. */
export function decodeLiveMessage(message: Buffer): LiveItem[] {
  const items: LiveItem[] = [];
  for (let from = 0; from < message.length;) {
    const end = message.indexOf(NEWLINE, from);
    const to = end < 0 ? message.length : end;
    const item = decodeLine(message.subarray(from, to));
    if (item !== null) items.push(item);
    from = to + 1;
  }
  return items;
}

function decodeLine(line: Buffer): LiveItem | null {
  if (line[1] !== SPACE) return null;
  switch (String.fromCharCode(line[0] ?? 0)) {
    case 'E': {
      const [words, json] = split(line.subarray(2), 2);
      const [sequence, flags] = words.map(numberIn);
      if (sequence == null || flags == null || json === null) return null;
      return { kind: 'event', sequence: sequence as ChannelSequence, flags, json };
    }
    case 'H': {
      const sequence = numberIn(line.toString('latin1', 2));
      return sequence === null ? null : { kind: 'head', sequence: sequence as ChannelSequence };
    }
    case 'X': {
      const [[flagsText = '', key = ''], json] = split(line.subarray(2), 2);
      const flags = numberIn(flagsText);
      return flags === null || key === '' || json === null ? null : { kind: 'value', flags, key, json };
    }
    case 'U': {
      const [[userId = '', flagsText = ''], json] = split(line.subarray(2), 2);
      const flags = numberIn(flagsText);
      return flags === null || userId === '' || json === null ? null : { kind: 'user value', userId, flags, json };
    }
    default:
      return null;
  }
}

/** The first words of a line, and the rest after the next space; null if there are fewer words. */
function split(line: Buffer, count: number): [words: string[], rest: Buffer | null] {
  const words: string[] = [];
  let from = 0;
  while (words.length < count) {
    const space = line.indexOf(SPACE, from);
    if (space < 0) return [words, null];
    words.push(line.toString('utf8', from, space));
    from = space + 1;
  }
  return [words, line.subarray(from)];
}

function numberIn(text: string): number | null {
  const number = NUMBER.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}
