/*
 * Slack's export: users.json, channels.json, and for each channel a folder with a file for each day. `ts` identifies
 * a message in its channel; `thread_ts` is the `ts` of the parent of a reply.
 */
import { z } from 'zod';

import { createChannelBody } from '#libs/features/channels/index.ts';

import { BadInput, checkedMessage, MAX_PARTICIPANTS, parsedBy, sourceTime, textItems } from './import.model.ts';
import type { ChannelDraft, MessageDraft, Place } from './import.model.ts';

const MAX_MENTIONS = 500;

const profile = z.looseObject({
  email: z.string().nullish(),
  display_name: z.string().nullish(),
  real_name: z.string().nullish(),
});
const user = z.looseObject({
  id: z.string(),
  name: z.string().nullish(),
  is_bot: z.boolean().nullish(),
  profile: profile.nullish(),
});
const text = z.looseObject({ value: z.string() });
const channel = z.looseObject({
  id: z.string().min(1),
  name: z.string().min(1),
  members: z.array(z.string()).nullish(),
  topic: text.nullish(),
  purpose: text.nullish(),
});
const file = z.looseObject({
  id: z.string(),
  name: z.string().nullish(),
  mimetype: z.string().nullish(),
  original_w: z.number().nullish(),
  original_h: z.number().nullish(),
  permalink: z.string().nullish(),
});
type SlackFile = z.infer<typeof file>;
const message = z.looseObject({
  type: z.literal('message'),
  ts: z.string().regex(/^\d+\.\d+$/),
  subtype: z.string().nullish(),
  user: z.string().nullish(),
  username: z.string().nullish(),
  bot_id: z.string().nullish(),
  bot_profile: z.looseObject({ name: z.string().nullish() }).nullish(),
  text: z.string().nullish(),
  thread_ts: z.string().nullish(),
  edited: z.looseObject({ ts: z.string() }).nullish(),
  files: z.array(file).nullish(),
  reactions: z.array(z.looseObject({ name: z.string(), count: z.number() })).nullish(),
});
type Message = z.infer<typeof message>;

export type SlackPeople = ReadonlyMap<string, SlackPerson>;

export interface SlackChannel {
  readonly folder: string;
  readonly draft: ChannelDraft;
}

/** Subtypes written by people or bots; all others are notifications about the channel. */
const WRITTEN = new Set(['bot_message', 'file_share', 'file_comment', 'me_message', 'thread_broadcast']);
/** Subtypes that repeat other messages. */
const LEFT_OUT = new Map([
  ['tombstone', 'a deleted message'],
  ['message_deleted', 'a deleted message'],
  ['message_changed', 'an edit; the message itself has the last text'],
  ['message_replied', 'a thread that has grown; its replies are messages'],
  ['reply_broadcast', 'a reply that is a message already'],
]);

/** Users without an id are left out. @throws BadInput if the value is not a list */
export function parseSlackUsers(json: unknown): SlackPeople {
  if (!Array.isArray(json)) throw new BadInput('not a list of users');
  const people = new Map<string, SlackPerson>();
  for (const input of json) {
    const parsed = user.safeParse(input);
    if (!parsed.success) continue;
    const { id, name, profile: about, is_bot: isBot } = parsed.data;
    const shown = about?.display_name || about?.real_name || name || id;
    people.set(id, { id, name: shown, email: about?.email || null, isBot: isBot === true });
  }
  return people;
}

/** @throws BadInput if the value is not a channel */
export function parseSlackChannel(input: unknown, people: SlackPeople, place: Place): SlackChannel {
  const parsed = channel.safeParse(input);
  if (!parsed.success) throw new BadInput('not a channel: it needs an id and a name');
  const { id, name, members, topic, purpose } = parsed.data;
  const body = createChannelBody.safeParse({
    name,
    channel_type: 'collaboration',
    participants: (members ?? []).slice(0, MAX_PARTICIPANTS).map((member) => participantOf(people.get(member), member)),
    meta_data: {
      source_format: 'slack',
      source_id: id,
      ...(topic?.value && { topic: topic.value }),
      ...(purpose?.value && { purpose: purpose.value }),
    },
  });
  if (!body.success) throw new BadInput(body.error.issues[0]?.message ?? 'not a channel');
  return { folder: name, draft: { key: `slack\n${id}`, place, body: body.data } };
}

export type SlackMessage =
  { readonly kind: 'message'; readonly message: MessageDraft } | { readonly kind: 'skipped'; readonly reason: string };

/** @throws BadInput */
export function parseSlackMessage(input: unknown, people: SlackPeople, place: Place): SlackMessage {
  const one = parsedBy(message, input);
  const reason = LEFT_OUT.get(one.subtype ?? '');
  if (reason !== undefined) return { kind: 'skipped', reason };
  const { text: plain, mentions } = readSlackText(one.text ?? '', people);
  const content = [...textItems(plain), ...(one.files ?? []).map(fileItem)];
  if (content.length === 0) return { kind: 'skipped', reason: 'a message without text or files' };
  const replyTo = one.thread_ts && one.thread_ts !== one.ts ? one.thread_ts : null;
  const body = checkedMessage({
    ...senderOf(one, people),
    content,
    metadata: metadataOf(one),
    ...(mentions.length > 0 && { invocation_config: { mentions: mentions.slice(0, MAX_MENTIONS) } }),
  });
  return {
    kind: 'message',
    message: { place, key: `ts ${one.ts}`, parentKey: replyTo && `ts ${replyTo}`, parentMayBeMissing: true, body },
  };
}

function senderOf(one: Message, people: SlackPeople): object {
  if (one.subtype && !WRITTEN.has(one.subtype)) {
    return { participant: { type: 'system' }, content_role: 'channel_notification' };
  }
  const person = people.get(one.user ?? '');
  if (one.subtype === 'bot_message' || one.bot_id || person?.isBot === true) {
    const name = one.username || one.bot_profile?.name || person?.name || one.bot_id || 'bot';
    const slackId = one.bot_id ?? one.user ?? null;
    const metadata = { name, ...(slackId !== null && { slack_id: slackId }) };
    return { participant: { type: 'external_agent', agent_metadata: metadata }, content_role: 'agent_response' };
  }
  const participant =
    person?.email && person.email.length >= 3 && person.email.length <= 320
      ? { type: 'maybe_user', email: person.email }
      : { type: 'non_authenticated_user', user_metadata: { name: person?.name ?? one.username ?? one.user ?? '?' } };
  return { participant, content_role: 'user_message' };
}

function participantOf(person: SlackPerson | undefined, id: string): object {
  const about = { name: person?.name ?? id, slack_id: id };
  return person?.isBot === true
    ? { type: 'external_agent', agent_metadata: about }
    : { type: 'non_authenticated_user', user_metadata: { ...about, ...(person?.email && { email: person.email }) } };
}

function metadataOf({ ts, thread_ts: threadTs, subtype, edited, reactions, user: id }: Message): object {
  return {
    source_time: sourceTime(ts),
    slack_ts: ts,
    ...(id && { slack_user: id }),
    ...(subtype && { slack_subtype: subtype }),
    ...(threadTs && { slack_thread_ts: threadTs }),
    ...(edited && { source_edited: sourceTime(edited.ts) }),
    // Slack's names of emoji, such as thumbsup, are not Unicode emoji as reactions require: kept as metadata.
    ...(reactions &&
      reactions.length > 0 && { slack_reactions: reactions.map(({ name, count }) => ({ name, count })) }),
  };
}

const MAX_URL = 1_024;

/** A media item if Slack gives all of its required members; otherwise (no width or height) a line of text. */
function fileItem(one: SlackFile): object {
  const { id, name, mimetype, original_w: width, original_h: height, permalink } = one;
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

export interface SlackPerson {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly isBot: boolean;
}

export interface Mention {
  readonly type: 'agent' | 'user';
  readonly id: string;
  readonly identifier: string;
  readonly identifier_type: 'handle';
  /** In UTF-16 units of the text. */
  readonly offset: number;
  readonly length: number;
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
