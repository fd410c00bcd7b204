/*
 * What travels on a channel's topic. A message is one or more lines, of one of these forms:
 *
 *   E <sequence> <flags> <json>   the frame of a durable event
 *   H <sequence>                  the read model has come to this sequence: who lacks events reads the log
 *   X <flags> <key> <json>        something that is not durable; `key` is what a newer one replaces it by
 *
 * JSON has no raw line breaks. Processes of several versions may share a topic: lines of a form that is not
 * known are passed over, and a sequence that is missed by it is found in the log.
 */
import type { ChannelSequence } from '#libs/kernel/event.ts';

import type { EventFrame } from './event-frame.ts';

export type LiveItem =
  | { readonly kind: 'event'; readonly sequence: ChannelSequence; readonly flags: number; readonly json: Buffer }
  | { readonly kind: 'head'; readonly sequence: ChannelSequence }
  | { readonly kind: 'value'; readonly flags: number; readonly key: string; readonly json: Buffer };

export function encodeEvent({ sequence, flags, json }: EventFrame): string {
  return `E ${sequence} ${flags} ${json}`;
}

export function encodeHead(sequence: ChannelSequence): string {
  return `H ${sequence}`;
}

/**
 * @param value.key must have no blanks and no line breaks
 * @param value.json must be on one line
 */
export function encodeValue({ flags, key, json }: { flags: number; key: string; json: string }): string {
  if (/\s/.test(key) || key === '') throw new TypeError(`not a key of something live: ${JSON.stringify(key)}`);
  return `X ${flags} ${key} ${json}`;
}

/** One message of several lines. */
export function joinLines(lines: readonly string[]): string {
  return lines.join('\n');
}

const NEWLINE = 0x0a;
const BLANK = 0x20;
const NUMBER = /^\d{1,16}$/;

/** What a message says, in its order. The JSON is part of the message's own memory: it is not copied. */
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
  if (line[1] !== BLANK) return null;
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
    default:
      return null;
  }
}

/** The first words of a line, and what comes after the blank behind them; null if there are fewer. */
function split(line: Buffer, count: number): [words: string[], rest: Buffer | null] {
  const words: string[] = [];
  let from = 0;
  while (words.length < count) {
    const blank = line.indexOf(BLANK, from);
    if (blank < 0) return [words, null];
    words.push(line.toString('utf8', from, blank));
    from = blank + 1;
  }
  return [words, line.subarray(from)];
}

function numberIn(text: string): number | null {
  const number = NUMBER.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(number) ? number : null;
}
