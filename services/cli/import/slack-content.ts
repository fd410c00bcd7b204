/*
 * What a Slack message says: its text, and what its blocks, attachments and files add to it. Blocks and attachments are
 * first written in Slack's own markup, so that one reader resolves it.
 */
import { z } from 'zod';

import { asObject } from './import.model.ts';

export interface SlackPerson {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly isBot: boolean;
}

interface Mention {
  readonly type: 'agent' | 'user';
  readonly id: string;
  readonly identifier: string;
  readonly identifier_type: 'handle';
  /** In UTF-16 units of the text. */
  readonly offset: number;
  readonly length: number;
}

type Json = Readonly<Record<string, unknown>>;

/** The text of a message in Slack's markup: `text`, and each line of blocks and attachments that it does not hold. */
export function markupOf({ text, blocks, attachments }: Json): string {
  const own = string(text);
  let said = wordsOf(own);
  const added: string[] = [];
  for (const line of [...listOf(blocks).map(blockMarkup), ...listOf(attachments).flatMap(attachmentLines)]) {
    const words = line.split('\n').map((one) => [one, wordsOf(one.replace(MARKER, ''))] as const);
    if (words.every(([one, found]) => (found === ' ' ? own.includes(one.trim()) : said.includes(found)))) continue;
    said += wordsOf(line);
    added.push(line);
  }
  return [own, ...added].filter((one) => one.trim() !== '').join('\n');
}

/** Of an item of a list: Slack counts with letters where lists are nested. */
const MARKER = /^\s*(•|\d+\.) /;

/** Words without marks, each between spaces: Slack writes the same words with other marks in `text` and in blocks. */
function wordsOf(markup: string): string {
  const plainMarkup = markup.replace(/<([@#!][^|<>]*)\|[^<>]*>/g, '<$1>').replace(/&(amp|lt|gt);/g, ' ');
  return ` ${plainMarkup.replace(/[^\p{L}\p{N}\p{Extended_Pictographic}]+/gu, ' ').trim()} `.replace(/^ +$/, ' ');
}

const string = (value: unknown): string => (typeof value === 'string' ? value : '');
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const jsonOf = (value: unknown): string => escaped(JSON.stringify(value));
const lines = (...parts: readonly string[]): string => parts.filter((part) => part !== '').join('\n');

/** The text of an attachment: a preview of a link, a forwarded message, or the content of a bot's message. */
function attachmentLines(input: unknown): string[] {
  const one = asObject(input);
  if (one === null) return [jsonOf(input)];
  const fields = listOf(one['fields']).map((field) => {
    const { title, value } = asObject(field) ?? {};
    return [string(title), string(value)].filter(Boolean).join(': ');
  });
  const unfurled = listOf(one['message_blocks']).map((block) => {
    const { message } = asObject(block) ?? {};
    return markupOf({ blocks: asObject(message)?.['blocks'] });
  });
  const title = linked(string(one['title']), string(one['title_link']));
  const found = [
    string(one['pretext']),
    linked(string(one['author_name']), string(one['author_link'])),
    title,
    string(one['text']),
    ...listOf(one['blocks']).map(blockMarkup),
    ...(string(one['text']) === '' ? unfurled : []),
    ...fields,
    ...listOf(one['files']).map(fileLine),
    ...['from_url', 'image_url'].map((name) => string(one[name])).map((url) => (url === '' ? '' : `<${url}>`)),
    string(one['footer']),
  ].filter((line) => line !== '');
  if (found.length > 0) return found;
  return [string(one['fallback']) || jsonOf(one)];
}

function fileLine(input: unknown): string {
  const { name, title, id, permalink } = asObject(input) ?? {};
  const shown = string(name) || string(title) || string(id);
  return `[file] ${shown}${string(permalink) === '' ? '' : ` <${string(permalink)}>`}`;
}

function linked(label: string, url: string): string {
  if (url === '' || label === '') return label;
  return `<${url}|${label}>`;
}

/** A block of another type, and one without text, keeps its JSON; a divider says nothing. */
function blockMarkup(input: unknown): string {
  const block = asObject(input);
  if (block === null) return jsonOf(input);
  switch (block['type']) {
    case 'divider':
      return '';
    case 'rich_text':
      return richText(block['elements']) ?? jsonOf(block);
    case 'section':
    case 'header':
      return lines(textOf(block['text']), ...listOf(block['fields']).map(textOf), accessory(block['accessory']));
    case 'markdown':
      return string(block['text']);
    case 'context':
    case 'actions':
      return listOf(block['elements']).map(accessory).join(' ');
    case 'table':
      return listOf(block['rows'])
        .map((row) => listOf(row).map(blockMarkup).join(' | '))
        .join('\n');
    case 'raw_text':
      return escaped(string(block['text']));
    case 'image':
      return accessory(block);
    case 'video':
      return lines(linked(textOf(block['title']), string(block['title_url'])), textOf(block['description']));
    default:
      return jsonOf(block);
  }
}

/** `{"type": "mrkdwn" | "plain_text", "text"}`. */
function textOf(value: unknown): string {
  const { text, type } = asObject(value) ?? {};
  return type === 'plain_text' ? escaped(string(text)) : string(text);
}

/** An element beside a text: a picture, a button, a text; others keep their JSON. */
function accessory(value: unknown): string {
  const one = asObject(value);
  if (one === null) return '';
  if (one['type'] === 'mrkdwn' || one['type'] === 'plain_text') return textOf(one);
  if (one['type'] === 'image') {
    const label = textOf(one['title']) || string(one['alt_text']);
    const url = string(one['image_url']);
    return `[image] ${[label, url && `<${url}>`].filter(Boolean).join(' ')}`;
  }
  const label = textOf(one['text']);
  return label === '' ? jsonOf(one) : linked(label, string(one['url']));
}

/** Null if an element is of an unknown type. */
function richText(elements: unknown, separator = '\n', depth = 0): string | null {
  const parts = listOf(elements).map((element) => richElement(asObject(element) ?? {}, depth));
  return parts.every((part) => part !== null) ? parts.join(separator) : null;
}

const PREFIX: Readonly<Record<string, (name: string) => string>> = {
  user: (id) => `<@${id}>`,
  channel: (id) => `<#${id}>`,
  usergroup: (id) => `<!subteam^${id}>`,
  broadcast: (range) => `<!${range}>`,
  emoji: (name) => `:${name}:`,
  color: (value) => value,
};
const NAMED: Readonly<Record<string, string>> = {
  user: 'user_id',
  channel: 'channel_id',
  usergroup: 'usergroup_id',
  broadcast: 'range',
  emoji: 'name',
  color: 'value',
};

function richElement(one: Json, depth: number): string | null {
  const type = string(one['type']);
  const named = Object.hasOwn(PREFIX, type) ? PREFIX[type]?.(string(one[NAMED[type] ?? ''])) : undefined;
  if (named !== undefined) return named;
  switch (type) {
    case 'text':
      return escaped(string(one['text']));
    case 'link':
      return `<${escaped(string(one['url']))}${string(one['text']) && `|${escaped(string(one['text']))}`}>`;
    case 'date':
      return string(one['fallback']) || string(one['format']);
    case 'rich_text_section':
      return richText(one['elements'], '', depth);
    case 'rich_text_preformatted':
      return quoted(richText(one['elements'], '', depth), '```\n', '\n```');
    case 'rich_text_quote':
      return richText(one['elements'], '', depth)?.replace(/^/gm, '&gt; ') ?? null;
    case 'rich_text_list': {
      const indent = '  '.repeat(Number(one['indent']) || 0);
      const items = listOf(one['elements']).map((item) => richElement(asObject(item) ?? {}, depth + 1));
      if (items.some((item) => item === null)) return null;
      const ordered = one['style'] === 'ordered';
      const first = Number(one['offset']) || 0;
      return items.map((item, index) => `${indent}${ordered ? `${first + index + 1}.` : '•'} ${item}`).join('\n');
    }
    default:
      return null;
  }
}

function quoted(text: string | null, before: string, after: string): string | null {
  return text === null ? null : `${before}${text}${after}`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

const MARKUP = /<([^<>]+)>|&(amp|lt|gt);/g;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>' };

export function readSlackText(
  source: string,
  people: ReadonlyMap<string, SlackPerson>,
): { readonly text: string; readonly mentions: readonly Mention[] } {
  const mentions: Mention[] = [];
  let text = '';
  let at = 0;
  for (const match of source.matchAll(MARKUP)) {
    text += source.slice(at, match.index);
    at = match.index + match[0].length;
    const [, marked, entity] = match;
    const person = marked === undefined ? null : /^@([A-Z0-9]+)(?:\|(.*))?$/.exec(marked);
    if (person === null) {
      text += marked === undefined ? (ENTITIES[entity ?? ''] ?? '') : plain(marked);
      continue;
    }
    const [, id = '', label] = person;
    const known = people.get(id);
    const identifier = known?.name ?? (label === undefined || label === '' ? id : label);
    const shown = `@${identifier}`;
    const type = known?.isBot === true ? 'agent' : 'user';
    mentions.push({ type, id, identifier, identifier_type: 'handle', offset: text.length, length: shown.length });
    text += shown;
  }
  return { text: text + source.slice(at), mentions };
}

/** `<#C1|general>`, `<!here>`, `<!subteam^S1|@team>`, `<https://…|label>`. */
function plain(marked: string): string {
  const bar = marked.indexOf('|');
  const target = decoded(bar < 0 ? marked : marked.slice(0, bar));
  const label = bar < 0 ? '' : decoded(marked.slice(bar + 1));
  if (target.startsWith('#')) return `#${label || target.slice(1)}`;
  if (target.startsWith('!')) return label || `@${target.slice(1)}`;
  return label === '' || label === target ? target : `${label} (${target})`;
}

function decoded(text: string): string {
  return text.replace(/&(amp|lt|gt);/g, (_, name: string) => ENTITIES[name] ?? '');
}

const file = z.looseObject({
  id: z.string(),
  name: z.string().nullish(),
  mimetype: z.string().nullish(),
  original_w: z.number().nullish(),
  original_h: z.number().nullish(),
  permalink: z.string().nullish(),
});

const MAX_URL = 1_024;

/** A media item if Slack gives all of its required members; otherwise (no width or height) a line of text. */
export function fileItem(input: unknown): object {
  const parsed = file.safeParse(input);
  if (!parsed.success) return { type: 'text', text: `[file] ${JSON.stringify(input)}` };
  const { id, name, mimetype, original_w: width, original_h: height, permalink } = parsed.data;
  const url =
    permalink && permalink.length <= MAX_URL && /^https?:/i.test(permalink) && URL.canParse(permalink)
      ? permalink
      : null;
  if (!mimetype || !Number.isInteger(width) || !Number.isInteger(height)) {
    return { type: 'text', text: `[file] ${name ?? id}${url === null ? '' : ` ${url}`}` };
  }
  const about = { media_id: id, mime_type: mimetype, width, height, description: name ?? id, name: name ?? null };
  return { type: 'media', meta_data: { ...about, source_url: url }, media_url: url };
}
