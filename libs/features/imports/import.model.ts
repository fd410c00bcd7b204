/*
 * What every format is parsed into: channels with the interactions to post in them, one job at a time, so
 * that a source of any size passes through in pieces.
 */
import type { CreateChannelBody } from '#libs/features/channels/index.ts';
import { postInteractionBody } from '#libs/features/interactions/index.ts';
import type { PostInteractionBody } from '#libs/features/interactions/index.ts';
import { jsonMap } from '#libs/platform/http/index.ts';

export const FORMATS = ['slack', 'sharegpt', 'openai', 'parley'] as const;
export type ImportFormat = (typeof FORMATS)[number];

/** Something of the source that cannot be imported; the message says why, for whoever has the source. */
export class BadInput extends Error {
  override readonly name = 'BadInput';
}

/** Where in the source something stands. `line` counts from 1; in Slack's files, it is the message's number. */
export interface Place {
  readonly file: string;
  readonly line: number | null;
}

export interface Problem extends Place {
  readonly reason: string;
}

/** An interaction of the source, checked as the API checks one. */
export interface MessageDraft {
  readonly place: Place;
  /** Names it in its channel, today and in every repetition: its span's id is derived from it. */
  readonly key: string;
  readonly parentKey: string | null;
  /** The source may not hold the parent: then it becomes a root. */
  readonly parentMayBeMissing?: boolean;
  /** Spans and turns are kept as they are, for they are ids already. */
  readonly keepsIds?: boolean;
  readonly body: PostInteractionBody;
}

/** A channel of the source. Its id is derived from `key`, so that a repetition meets the same channel. */
export interface ChannelDraft {
  readonly key: string;
  readonly place: Place;
  readonly body: CreateChannelBody;
}

/** A piece of work: those of one channel are done in order, those of different channels at once. */
export interface ImportJob {
  /** Null if the piece holds nothing but problems. */
  readonly channel: ChannelDraft | null;
  readonly messages: readonly MessageDraft[];
  /** What is wrong with the source. */
  readonly bad: readonly Problem[];
  /** What is left out on purpose. */
  readonly skipped: readonly Problem[];
  /** Where a source goes on after this piece, and how far (0 to 1) it has come. */
  readonly mark: number;
  readonly fraction: number;
}

/** A source, wherever it has been left. */
export interface ImportSource {
  /** Tells sources apart, and a source from what it has been changed to. */
  readonly fingerprint: string;
  jobs(from: number): AsyncIterable<ImportJob>;
}

/** An event has to fit into an append, beside its metadata. */
const MAX_MESSAGE_BYTES = 512 * 1024;

/** @throws BadInput that names the first thing that is wrong */
export function checkedMessage(input: unknown): PostInteractionBody {
  const parsed = postInteractionBody.safeParse(input);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new BadInput(`${issue?.path.join('.') ?? 'message'}: ${issue?.message ?? 'is invalid'}`);
  }
  const { content_role: role, content } = parsed.data;
  if (role === 'tool_call_update' || content.some(({ type }) => type === 'tool_call_update')) {
    throw new BadInput('tool-call updates are not kept');
  }
  if (Buffer.byteLength(JSON.stringify(parsed.data)) > MAX_MESSAGE_BYTES) {
    throw new BadInput(`a message of more than ${MAX_MESSAGE_BYTES / 1024} KiB`);
  }
  return parsed.data;
}

const map = jsonMap();

/** Whether the API takes it for a free map: of so many levels, values and bytes. */
export function fitsAsMap(value: object): boolean {
  return map.safeParse(value).success;
}

const MAX_TEXT = 131_072;

/** Text as content; what is too long for one item becomes several. */
export function textItems(text: string): { readonly type: 'text'; readonly text: string }[] {
  const items: { type: 'text'; text: string }[] = [];
  for (let at = 0; at < text.length;) {
    let end = Math.min(text.length, at + MAX_TEXT);
    // A character outside the basic plane takes two places, and stays whole.
    if (end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end -= 1;
    items.push({ type: 'text', text: text.slice(at, end) });
    at = end;
  }
  return items;
}

/** Anything else that `Date.parse` takes, it guesses: `part 5` is a day of 2001 to it. */
const ISO_TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?) ?(Z|[+-]\d{2}:?\d{2})?)?$/i;
const RFC_2822_TIME = /\d{4} \d{2}:\d{2}(?::\d{2})? (?:GMT|UTC|[+-]\d{4})(?: \([A-Z]+\))?$/;

/**
 * A time of the source as RFC 3339, or null: an ISO or RFC 2822 text, or Unix seconds or milliseconds. Without a
 * zone it is taken for UTC, so that it is the same wherever it is imported.
 */
export function sourceTime(value: unknown): string | null {
  if (JSON.isRawJSON(value)) return sourceTime(Number(value.rawJSON));
  if (typeof value === 'string' && !/^\d+(\.\d+)?$/.test(value)) return timeOfText(value.trim());
  if (typeof value !== 'number' && typeof value !== 'string') return null;
  const number = Number(value);
  // Seconds stay below this until the year 5138.
  return isoOf(number < 1e11 ? number * 1_000 : number);
}

function timeOfText(text: string): string | null {
  const iso = ISO_TIME.exec(text);
  if (iso === null) return RFC_2822_TIME.test(text) ? isoOf(Date.parse(text)) : null;
  const [, day, time = '00:00', zone = 'Z'] = iso;
  return isoOf(Date.parse(`${day}T${time}${zone.toUpperCase()}`));
}

function isoOf(milliseconds: number): string | null {
  const date = new Date(Math.round(milliseconds));
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** The beginning of a text, as a name. */
export function shortName(text: string, max = 80): string {
  const line = text.replace(/\s+/g, ' ').trim();
  const characters = [...line];
  return characters.length <= max ? line : `${characters.slice(0, max - 1).join('')}…`;
}

/** A copy of a JSON object; null for any other value, raw numbers included. */
export function asObject(value: unknown): Record<string, unknown> | null {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
  return isObject ? { ...value } : null;
}
