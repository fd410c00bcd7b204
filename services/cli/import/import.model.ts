/*
 * The common model of all import formats: jobs of one channel and some of its messages each, so that a source
 * of any size is imported with bounded memory.
 */
import type { z } from 'zod';

import {
  type CreateChannelBody,
  postInteractionBody,
  type PostInteractionBody,
  type Reactor,
} from '#libs/features/channels/index.ts';

import { admitJson } from '#libs/kernel/text.ts';

import { jsonMap, parseJson, scanJson } from '#libs/platform/http/index.ts';

export const FORMATS = ['slack', 'chatgpt', 'sharegpt', 'openai', 'parley'] as const;
export type ImportFormat = (typeof FORMATS)[number];
/** For the owner of a file of another format. */
export const FORMATS_READ = `formats that can be imported: ${FORMATS.join(', ')} (--format); convert others to lines of {"messages":[{"role","content"}]}`;

/** A part of the source cannot be imported. The message gives the reason, for the owner of the source. */
export class BadInput extends Error {
  override readonly name = 'BadInput';
}

/** A place in the source. `line` counts from 1; in Slack's files it is the number of the message. */
export interface Place {
  readonly file: string;
  readonly line: number | null;
  /** Number of the element, in a file that is one JSON array. */
  readonly item?: number;
}

export interface Problem extends Place {
  readonly reason: string;
}

/** An interaction of the source, validated by the schema of the API. */
export interface MessageDraft {
  readonly place: Place;
  /** Stable name within the channel: the id of its span is derived from it. */
  readonly key: string;
  readonly parentKey: string | null;
  /** The source may lack the parent: then the message becomes a root. */
  readonly parentMayBeMissing?: boolean;
  /** Begins a turn although it has a parent. */
  readonly startsTurn?: boolean;
  /** Keeps the span and turn ids of the source, which are ids of Parley already. */
  readonly keepsIds?: boolean;
  readonly body: PostInteractionBody;
  /** Of the body as JSON. */
  readonly bytes: number;
  /** The name of a sender that is a user or an agent, for organizations that do not have it. */
  readonly senderName?: string | undefined;
  readonly reactions?: readonly ReactionDraft[] | undefined;
  /** A thread of the source is about this message. */
  readonly startsThread?: boolean | undefined;
}

interface ReactionDraft {
  readonly emoji: string;
  readonly reactor: Reactor;
}

/** A thread's channel in the source, and the message that it is about. */
export interface ThreadDraft {
  /** Key of the channel that it belongs to. */
  readonly parentKey: string;
  readonly origin: { readonly spanId: string; readonly turnId: string | null } | null;
  readonly metaData: CreateChannelBody['meta_data'];
}

/** A channel of the source. Its id is derived from `key`, so a repeated import finds the same channel. */
export interface ChannelDraft {
  readonly key: string;
  readonly place: Place;
  readonly body: CreateChannelBody;
  /** Names of its users and agents in the source, by their ids there. */
  readonly names?: ReadonlyMap<string, string>;
  /** Set for a thread; `body` is the channel that it becomes if its parent is not imported. */
  readonly thread?: ThreadDraft | undefined;
}

/** A unit of work. Jobs of one channel run in order, jobs of different channels concurrently. */
export interface ImportJob {
  /** Null if the job only reports problems. */
  readonly channel: ChannelDraft | null;
  readonly messages: readonly MessageDraft[];
  readonly bad: readonly Problem[];
  /** Parts that are left out on purpose. */
  readonly skipped: readonly Problem[];
  /** Names of members of the source that had no room, once for each time. */
  readonly leftOut?: readonly string[];
  /** Checkpoint after this job, in units of the source, and the fraction (0 to 1) of the source before it. */
  readonly checkpoint: number;
  readonly fraction: number;
}

export interface ImportSource {
  /** Differs between sources, and between versions of one source. */
  readonly fingerprint: string;
  jobs(from: number): AsyncIterable<ImportJob>;
}

/** An event must fit into one append, with its metadata. */
const MAX_MESSAGE_BYTES = 512 * 1024;

/** Parses a value by a schema. @throws BadInput with the first problem; `root` names the value itself */
export function parsedBy<T>(schema: z.ZodType<T>, value: unknown, root = 'it', prefix = ''): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new BadInput(`${prefix}${issue?.path.join('.') || root}: ${issue?.message ?? 'is invalid'}`);
}

/** @throws BadInput with the first problem */
export function checkedMessage(input: unknown): Pick<MessageDraft, 'body' | 'bytes'> {
  const body = parsedBy(postInteractionBody, input, '');
  const { content_role: role, content } = body;
  if (role === 'tool_call_update' || content.some(({ type }) => type === 'tool_call_update')) {
    throw new BadInput('tool-call updates are not kept');
  }
  const bytes = Buffer.byteLength(JSON.stringify(body));
  if (bytes > MAX_MESSAGE_BYTES) {
    throw new BadInput(`a message of more than ${MAX_MESSAGE_BYTES / 1024} KiB`);
  }
  return { body, bytes };
}

const map = jsonMap();

/** Whether the API accepts the value as a free map (levels, number of values, bytes). */
export function fitsAsMap(value: object): boolean {
  return map.safeParse(value).success;
}

/** Of a channel, as the API has it. */
const MAX_PARTICIPANTS = 1_000;
/** Of a message, as the API has it. */
const MAX_MENTIONS = 500;
/** In the reason; all are counted. */
const MAX_NAMES = 20;

/** Elements of a list of the source that the API has no room for. */
export interface Lost {
  readonly what: 'participants' | 'mentions';
  readonly count: number;
  /** Names the first ones. */
  readonly reason: string;
}

export function keptParticipants<T>(all: readonly T[], nameOf: (one: T) => string) {
  return kept({ all, nameOf, most: MAX_PARTICIPANTS, what: 'participants', of: 'a channel' });
}

export function keptMentions<T>(all: readonly T[], nameOf: (one: T) => string) {
  return kept({ all, nameOf, most: MAX_MENTIONS, what: 'mentions', of: 'a message' });
}

interface Bounded<T> {
  readonly all: readonly T[];
  readonly nameOf: (one: T) => string;
  readonly most: number;
  readonly what: Lost['what'];
  readonly of: string;
}

function kept<T>({ all, nameOf, most, what, of }: Bounded<T>): { readonly list: T[]; readonly lost: Lost | null } {
  const [list, rest] = [all.slice(0, most), all.slice(most)];
  if (rest.length === 0) return { list, lost: null };
  const names = rest.slice(0, MAX_NAMES).map((one) => shortName(nameOf(one)));
  const more = rest.length > MAX_NAMES ? ` and ${rest.length - MAX_NAMES} more` : '';
  const reason = `${rest.length} of ${all.length} ${what} are left out, because ${of} has at most ${most}: ${names.join(', ')}${more}`;
  return { list, lost: { what, count: rest.length, reason } };
}

/** For `leftOut` of a job: the element once for each time. */
export function timesOf({ what, count }: Lost): string[] {
  return Array.from({ length: count }, () => what);
}

const MAX_TEXT = 131_072;

/** Text as content; a text that is too long for one item is split. */
export function textItems(text: string): { readonly type: 'text'; readonly text: string }[] {
  const items: { type: 'text'; text: string }[] = [];
  for (let at = 0; at < text.length;) {
    let end = Math.min(text.length, at + MAX_TEXT);
    // Does not split a surrogate pair.
    if (end < text.length && /[\uD800-\uDBFF]/.test(text.charAt(end - 1))) end -= 1;
    items.push({ type: 'text', text: text.slice(at, end) });
    at = end;
  }
  return items;
}

/** As in requests: recursive code survives this depth. */
const MAX_DEPTH = 100;
/** About half a gigabyte of memory. The user list of the largest workspaces has fewer. */
const MAX_VALUES = 8_000_000;

/**
 * Parses JSON of a source. Checks depth and number of values first, because a small text can describe values of
 * many times its size. Numbers that a double cannot represent become raw numbers (`parseJson`): a map with one is
 * kept as its text, and refused where text is not allowed. Texts are admitted: half a character becomes U+FFFD.
 *
 * @throws BadInput for malformed JSON, nesting beyond 100 levels, and more than 8 million values
 */
export function parseSourceJson(text: string): unknown {
  const scan = scanJson(text, MAX_DEPTH);
  if (scan.tooDeepAt !== undefined) throw new BadInput(`nested deeper than ${MAX_DEPTH} levels`);
  if (scan.values > MAX_VALUES) throw new BadInput(`more than ${MAX_VALUES / 1_000_000} million values`);
  try {
    return admitJson(parseJson(text, scan));
  } catch {
    throw new BadInput('not JSON');
  }
}

/** `Date.parse` guesses at other texts: it reads `part 5` as a day of 2001. */
const ISO_TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?) ?(Z|[+-]\d{2}:?\d{2})?)?$/i;
const RFC_2822_TIME = /\d{4} \d{2}:\d{2}(?::\d{2})? (?:GMT|UTC|[+-]\d{4})(?: \([A-Z]+\))?$/;

/** The messages of a conversation without times of their own have its time. */
let lastTime: { readonly text: string; readonly iso: string | null } = { text: '', iso: null };

/**
 * A time of the source as RFC 3339, or null: an ISO or RFC 2822 text, or Unix seconds or milliseconds. A time
 * without a zone is read as UTC, so that the result does not depend on the machine.
 */
export function sourceTime(value: unknown): string | null {
  if (JSON.isRawJSON(value)) return sourceTime(Number(value.rawJSON));
  if (typeof value === 'string' && !/^\d+(\.\d+)?$/.test(value)) {
    if (value !== lastTime.text) lastTime = { text: value, iso: timeOfText(value.trim()) };
    return lastTime.iso;
  }
  if (typeof value !== 'number' && typeof value !== 'string') return null;
  const number = Number(value);
  // Seconds stay below this limit until the year 5138.
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
