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
import type { ChannelSequence } from '#libs/kernel/event.ts';
import { ENTITY_ID } from '#libs/kernel/ids.ts';

import type { EventFrame } from './frames.ts';

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
