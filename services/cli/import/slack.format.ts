/*
 * Slack's export: users.json, lists of its conversations, and for each of them a folder with a file for each day. `ts` identifies
 * a message in its channel; `thread_ts` is the `ts` of the parent of a reply.
 */
import { z } from 'zod';

import { createChannelBody } from '#libs/features/channels/index.ts';

import { withSourceFields } from './conversation.ts';
import {
  BadInput,
  type ChannelDraft,
  checkedMessage,
  keptMentions,
  keptParticipants,
  type Lost,
  type MessageDraft,
  parsedBy,
  type Place,
  shortName,
  sourceTime,
  textItems,
  timesOf,
} from './import.model.ts';
import { fileItem, markupOf, readSlackText, type SlackPerson } from './slack-content.ts';

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
  /** Direct messages have none. */
  name: z.string().min(1).nullish(),
  members: z.array(z.string()).nullish(),
  topic: text.nullish(),
  purpose: text.nullish(),
});
const message = z.looseObject({
  type: z.literal('message'),
  ts: z.string().regex(/^\d+\.\d+$/),
  subtype: z.string().nullish(),
  user: z.string().nullish(),
  user_profile: profile.extend({ name: z.string().nullish() }).nullish().catch(null),
  username: z.string().nullish(),
  bot_id: z.string().nullish(),
  bot_profile: z.looseObject({ name: z.string().nullish() }).nullish(),
  text: z.string().nullish(),
  thread_ts: z.string().nullish(),
  edited: z.looseObject({ ts: z.string() }).nullish(),
  files: z.array(z.unknown()).nullish(),
  file: z.unknown().optional(),
  comment: z.looseObject({ user: z.string().nullish() }).nullish(),
  blocks: z.array(z.unknown()).nullish(),
  attachments: z.array(z.unknown()).nullish(),
  reactions: z.array(z.looseObject({ name: z.string(), count: z.number() })).nullish(),
});
type Message = z.infer<typeof message>;

export type SlackPeople = ReadonlyMap<string, SlackPerson>;

export interface SlackChannel {
  /** Names that the folder of its days may have, the most certain one first. */
  readonly folders: readonly string[];
  readonly draft: ChannelDraft;
  /** Members that the channel has no room for. */
  readonly lost: Lost | null;
}

/** The lists of an export, and the kinds of their conversations. */
export const SLACK_LISTS = {
  'channels.json': 'channel',
  'groups.json': 'private_channel',
  'mpims.json': 'group_message',
  'dms.json': 'direct_message',
} as const;
type SlackKind = (typeof SLACK_LISTS)[keyof typeof SLACK_LISTS];

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
    people.set(parsed.data.id, personOf(parsed.data));
  }
  return people;
}

function personOf({ id, name, profile: about, is_bot: isBot }: z.infer<typeof user>): SlackPerson {
  const shown = about?.display_name || about?.real_name || name || id;
  return { id, name: shown, email: about?.email || null, isBot: isBot === true };
}

/** @throws BadInput if the value is not a channel */
export function parseSlackChannel(input: unknown, kind: SlackKind, people: SlackPeople, place: Place): SlackChannel {
  const parsed = channel.safeParse(input);
  if (!parsed.success) throw new BadInput('not a channel: it needs an id');
  const { id, name, members, topic, purpose } = parsed.data;
  const nameOf = (member: string): string => people.get(member)?.name ?? member;
  const { list, lost } = keptParticipants(members ?? [], nameOf);
  const body = createChannelBody.safeParse({
    name: name ?? (shortName((members ?? []).map(nameOf).join(', ')) || id),
    channel_type: 'collaboration',
    participants: list.map((member) => participantOf(people.get(member), member)),
    meta_data: {
      source_format: 'slack',
      source_id: id,
      ...(kind !== 'channel' && { source_kind: kind }),
      ...(topic?.value && { topic: topic.value }),
      ...(purpose?.value && { purpose: purpose.value }),
    },
  });
  if (!body.success) throw new BadInput(body.error.issues[0]?.message ?? 'not a channel');
  return { folders: name ? [id, name] : [id], draft: { key: `slack\n${id}`, place, body: body.data }, lost };
}

/** Members that are read above, and those that repeat other messages, or say what one person has read. */
const KNOWN = new Set(
  Object.keys(message.shape).concat(
    ['reply_count', 'reply_users', 'reply_users_count', 'replies', 'latest_reply', 'parent_user_id', 'is_locked'],
    ['subscribed', 'last_read', 'unread_count', 'team', 'user_team', 'source_team', 'upload', 'display_as_bot'],
  ),
);

type SlackMessage =
  | {
      readonly kind: 'message';
      readonly message: MessageDraft;
      readonly leftOut: readonly string[];
      /** Mentions that the message has no room for. */
      readonly lost: Lost | null;
    }
  | { readonly kind: 'skipped'; readonly reason: string };

/** @throws BadInput */
export function parseSlackMessage(input: unknown, people: SlackPeople, place: Place): SlackMessage {
  const one = parsedBy(message, input);
  const reason = LEFT_OUT.get(one.subtype ?? '');
  if (reason !== undefined) return { kind: 'skipped', reason };
  const { text: plain, mentions: all } = readSlackText(markupOf(one), people);
  const { list: mentions, lost } = keptMentions(all, ({ identifier }) => identifier);
  // Until 2018, a message had at most one file.
  const files = one.files ?? (one.file ? [one.file] : []);
  const content = [...textItems(plain), ...files.map(fileItem)];
  if (content.length === 0) {
    return { kind: 'skipped', reason: `a message without text or files${one.subtype ? ` (${one.subtype})` : ''}` };
  }
  const replyTo = one.thread_ts && one.thread_ts !== one.ts ? one.thread_ts : null;
  const leftOut = lost === null ? [] : timesOf(lost);
  const others = Object.fromEntries(Object.entries(one).filter(([name]) => !KNOWN.has(name)));
  const checked = checkedMessage({
    ...senderOf(one, people),
    content,
    metadata: withSourceFields(metadataOf(one), others, leftOut),
    ...(mentions.length > 0 && { invocation_config: { mentions } }),
  });
  return {
    kind: 'message',
    leftOut,
    lost,
    message: {
      place,
      key: `ts ${one.ts}`,
      parentKey: replyTo && `ts ${replyTo}`,
      parentMayBeMissing: true,
      ...checked,
    },
  };
}

function senderOf(one: Message, people: SlackPeople): object {
  if (one.subtype && !WRITTEN.has(one.subtype)) {
    return { participant: { type: 'system' }, content_role: 'channel_notification' };
  }
  const id = one.user ?? one.comment?.user ?? '';
  const about = one.user_profile;
  // People of other workspaces are not in the list of users.
  const foreign = about && personOf({ id, name: about.name, profile: about });
  const person = people.get(id) ?? foreign;
  if (one.subtype === 'bot_message' || one.bot_id || person?.isBot === true) {
    const name = one.username || one.bot_profile?.name || person?.name || one.bot_id || 'bot';
    const slackId = one.bot_id ?? one.user ?? null;
    const metadata = { name, ...(slackId !== null && { slack_id: slackId }) };
    return { participant: { type: 'external_agent', agent_metadata: metadata }, content_role: 'agent_response' };
  }
  const participant =
    person?.email && person.email.length >= 3 && person.email.length <= 320
      ? { type: 'maybe_user', email: person.email }
      : { type: 'non_authenticated_user', user_metadata: { name: person?.name ?? one.username ?? (id || '?') } };
  return { participant, content_role: 'user_message' };
}

function participantOf(person: SlackPerson | undefined, id: string): object {
  const about = { name: person?.name ?? id, slack_id: id };
  return person?.isBot === true
    ? { type: 'external_agent', agent_metadata: about }
    : { type: 'non_authenticated_user', user_metadata: { ...about, ...(person?.email && { email: person.email }) } };
}

function metadataOf({
  ts,
  thread_ts: threadTs,
  subtype,
  edited,
  reactions,
  user: id,
}: Message): Record<string, unknown> {
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
