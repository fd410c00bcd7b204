/** Conversations of the JSON-lines formats: one line is one channel with its messages. */
import { createChannelBody } from '#libs/features/channels/index.ts';

import { hasContent, type Leftovers } from './content-parts.ts';
import {
  asObject,
  BadInput,
  type ChannelDraft,
  checkedMessage,
  fitsAsMap,
  keptParticipants,
  type MessageDraft,
  parsedBy,
  parseSourceJson,
  type Place,
  type Problem,
  shortName,
  sourceTime,
  timesOf,
} from './import.model.ts';

export interface Conversation {
  readonly channel: ChannelDraft;
  readonly messages: readonly MessageDraft[];
  /** Messages, and parts of messages, that are not in `messages`. */
  readonly bad: readonly Problem[];
  /** Names of members that had no room, once for each time. */
  readonly leftOut: readonly string[];
}

/** @throws BadInput if the line is no JSON object */
export function objectOfLine(line: string): Record<string, unknown> {
  const found = asObject(parseSourceJson(line));
  if (found === null) throw new BadInput('not a JSON object');
  return found;
}

interface ConversationOrigin {
  readonly place: Place;
  readonly line: string;
  readonly format: string;
  /** The id that the conversation has in all files of the source, if its messages have such ids, too. */
  readonly identity?: string | undefined;
}

/**
 * The channel of a conversation. Without an id, the text of the line, its number and the name of the file identify it:
 * the same text on another line, or another text in a file of the same name, is another conversation.
 *
 * @param source members of the line besides its messages. `tools` are definitions of the tools that the agent could
 * call. If they exceed the limits of a channel's map, they are stored as text, or left out
 * @throws BadInput for an empty conversation, or a channel that the API would refuse
 */
export function conversationOf(
  { place, line, format, identity }: ConversationOrigin,
  source: Record<string, unknown>,
  tree: TurnTree,
): Conversation {
  const { messages, leftOut } = tree;
  if (messages.length === 0) throw new BadInput(tree.bad[0]?.reason ?? 'no messages');
  const { title, tools, ...rest } = source;
  const id = rest['id'] ?? rest['conversation_id'];
  const isTitle = typeof title === 'string' && title.trim() !== '';
  const name = isTitle ? shortName(title) : nameOf(messages, place);
  const meta = {
    source_format: format,
    source_file: place.file,
    source_line: place.line,
    ...((typeof id === 'string' || typeof id === 'number') && { source_id: id }),
    ...(JSON.isRawJSON(id) && { source_id: id.rawJSON }),
  };
  const described = tools === undefined ? [] : [{ tools }, { tools: JSON.stringify(tools) }, { tools_left_out: true }];
  const withTools = described.map((more) => ({ ...meta, ...more })).find(fitsAsMap) ?? meta;
  if ('tools_left_out' in withTools) leftOut.push('tools');
  const other: Record<string, unknown> = { ...rest, ...(title !== name && { title }) };
  for (const name of ['id', 'conversation_id'] as const)
    if (other[name] === id && 'source_id' in meta) delete other[name];
  const { list: participants, lost } = keptParticipants(sendersOf(messages), senderName);
  if (lost !== null) leftOut.push(...timesOf(lost));
  const channel = {
    name,
    participants,
    meta_data: withSourceFields(withTools, other, leftOut),
  };
  const key = `${format}\n${identity ?? `${place.file}\n${place.item ?? place.line}\n${line}`}`;
  const body = parsedBy(createChannelBody, channel, '', 'channel: ');
  const bad = lost === null ? tree.bad : [...tree.bad, { ...place, reason: lost.reason }];
  return { channel: { key, place, body }, messages, bad, leftOut };
}

/** Adds the members of the source to a map, as far as its limits allow: as they are, else as JSON, else by their names. */
export function withSourceFields(map: Record<string, unknown>, rest: Record<string, unknown>, leftOut: string[]) {
  const fields = Object.entries(rest).filter(([, value]) => hasContent(value));
  if (fields.length === 0) return map;
  const all = { ...map, source_fields: Object.fromEntries(fields) };
  if (fitsAsMap(all)) return all;
  const kept: Record<string, unknown> = {};
  for (const [name, value] of fields) {
    const forms = [{ [name]: value }, { [name]: JSON.stringify(value) }];
    const form = forms.find((one) => fitsAsMap({ ...map, source_fields: { ...kept, ...one } }));
    if (form === undefined) leftOut.push(shortName(name));
    else Object.assign(kept, form);
  }
  return Object.keys(kept).length === 0 ? map : { ...map, source_fields: kept };
}

function nameOf(messages: readonly MessageDraft[], { file, line }: Place): string {
  const first = messages.find(({ body }) => body.content_role === 'user_message') ?? messages[0];
  const text = first?.body.content.find((item) => item.type === 'text')?.text ?? '';
  return shortName(text) || `${file}, line ${line}`;
}

type Sender = Extract<
  NonNullable<MessageDraft['body']['participant']>,
  { readonly type: 'non_authenticated_user' | 'external_agent' }
>;

/** The distinct senders. */
function sendersOf(messages: readonly MessageDraft[]): Sender[] {
  const found = new Map<string, Sender>();
  for (const { participant } of messages.map(({ body }) => body)) {
    if (participant?.type !== 'non_authenticated_user' && participant?.type !== 'external_agent') continue;
    found.set(JSON.stringify(participant), participant);
  }
  return [...found.values()];
}

function senderName(sender: Sender): string {
  const about = sender.type === 'external_agent' ? sender.agent_metadata : sender.user_metadata;
  return typeof about?.['name'] === 'string' ? about['name'] : sender.type;
}

type Content = readonly { readonly type: string }[];

/** Details of a message besides its content. */
export interface About {
  readonly name?: string | undefined;
  /** In the form of the source; see `sourceTime`. */
  readonly time?: unknown;
  /** Kept as `source_fields`, as far as it fits. */
  readonly metadata?: Record<string, unknown>;
  /** Kept beside `source_time`. */
  readonly marks?: Record<string, unknown>;
  /** Key of the message before a question that has alternatives. */
  readonly after?: string | undefined;
}

/** Of a question; its answers and their tool calls are deeper. The API accepts 64. */
const MAX_DEPTH = 60;

interface PendingCall {
  readonly key: string;
  readonly name: string;
  readonly id: string | null;
}

/** A position in the tree: the turn that the next message belongs to, and its calls that have no result yet. */
interface TurnPosition {
  readonly root: string | null;
  readonly pending: readonly PendingCall[];
}

/** Builds the interactions of a conversation: a user's message is the root of a turn, the replies are its descendants. */
export class TurnTree {
  readonly messages: MessageDraft[] = [];
  readonly bad: Problem[] = [];
  readonly leftOut: string[] = [];
  readonly #place: Place;
  readonly #depths = new Map<string, number>();
  #root: string | null = null;
  #pending: readonly PendingCall[] = [];
  #source = { name: 'message', first: 0 };

  constructor(place: Place) {
    this.#place = place;
  }

  /** Set it to continue another branch. */
  get position(): TurnPosition {
    return { root: this.#root, pending: this.#pending };
  }

  set position({ root, pending }: TurnPosition) {
    this.#root = root;
    this.#pending = pending;
  }

  /** The messages that follow get keys of this id of the source, instead of their positions. */
  from(id: string): void {
    this.#source = { name: id, first: this.messages.length };
  }

  /** Reports a message, or a part of one, that is left out. */
  report(reason: string): void {
    this.bad.push({ ...this.#place, reason });
  }

  /** @param about its `after` is the message that an edited question follows, as the question before the edit does */
  user(content: Content, about: About = {}): void {
    const participant = {
      type: 'non_authenticated_user',
      user_metadata: about.name === undefined ? null : { name: about.name },
    };
    const after = about.after !== undefined && this.#depthBelow(about.after) < MAX_DEPTH ? about.after : null;
    this.#root = this.#add({ participant, content, content_role: 'user_message' }, after, about);
    this.#pending = [];
  }

  /** Instructions, which have no sender and belong to no turn. */
  system(content: Content, about: About & { readonly sourceRole: string }): void {
    const marks = { source_role: about.sourceRole, ...about.marks };
    const body = { participant: { type: 'system' }, content, content_role: 'channel_notification' };
    this.#add(body, null, { ...about, marks });
  }

  agent(content: Content, about: About = {}, contentRole = 'agent_response'): void {
    this.#below({ participant: agentOf(about), content, content_role: contentRole }, about);
  }

  toolCall(
    call: { readonly name: string; readonly args: Record<string, unknown>; readonly id: string | null },
    about: About = {},
  ): void {
    const content = [{ type: 'tool_call', tool_name: call.name, tool_args: call.args, tool_call_id: call.id }];
    const key = this.#below({ participant: agentOf(about), content, content_role: 'tool_call' }, about);
    this.#pending = [...this.#pending, { key, name: call.name, id: call.id }];
  }

  /** A child of its call: the call with the same id, else the oldest one without a result (of the same name, if given). */
  toolResult(
    result: { readonly name: string | null; readonly value: Record<string, unknown>; readonly id: string | null },
    about: About = {},
  ): void {
    const call = this.#takeCall(result);
    const content = [
      {
        type: 'tool_call_result',
        tool_name: result.name ?? call?.name ?? 'unknown',
        tool_result: result.value,
        tool_call_id: result.id ?? call?.id ?? null,
      },
    ];
    const body = { participant: agentOf(about), content, content_role: 'tool_call_result' };
    if (call === null) this.#below(body, about);
    else this.#add(body, call.key, about);
  }

  #takeCall({ name, id }: { readonly name: string | null; readonly id: string | null }): PendingCall | null {
    const fits = (call: PendingCall): boolean => (id !== null ? call.id === id : name === null || call.name === name);
    const call = this.#pending.find(fits) ?? null;
    this.#pending = this.#pending.filter((one) => one !== call);
    return call;
  }

  /** Adds a descendant of the turn's user message. Without one, the first such message becomes the root of the turn. */
  #below(body: object, about: About): string {
    const key = this.#add(body, this.#root, about);
    this.#root ??= key;
    return key;
  }

  #add(body: object, parentKey: string | null, { time, metadata = {}, marks }: About): string {
    const key = `${this.#source.name} ${this.messages.length - this.#source.first}`;
    this.#depths.set(key, this.#depthBelow(parentKey));
    const at = sourceTime(time);
    const all = withSourceFields({ ...marks, ...(at !== null && { source_time: at }) }, metadata, this.leftOut);
    const checked = checkedMessage({ ...body, metadata: Object.keys(all).length === 0 ? null : all });
    const startsTurn = checked.body.content_role === 'user_message' && parentKey !== null;
    this.messages.push({ place: this.#place, key, parentKey, ...checked, ...(startsTurn && { startsTurn }) });
    return key;
  }

  #depthBelow(parentKey: string | null): number {
    return parentKey === null ? 1 : (this.#depths.get(parentKey) ?? 0) + 1;
  }
}

function agentOf({ name }: About): object {
  return { type: 'external_agent', agent_metadata: name === undefined ? null : { name } };
}

/**
 * Arguments or result of a tool as the map that the contract requires. A text that is not a map is stored under
 * `member`, as is the text of a map that the API would refuse for its size or its numbers.
 */
export function mapOf(value: unknown, member: string): Record<string, unknown> {
  const map = anyMapOf(value, member);
  if (fitsAsMap(map)) return map;
  return { [member]: typeof value === 'string' ? value : JSON.stringify(value) };
}

function anyMapOf(value: unknown, member: string): Record<string, unknown> {
  if (typeof value !== 'string') return asObject(value) ?? { [member]: value ?? null };
  // Most results that are not JSON are sentences: an error for each would cost more than the rest of the message.
  if (!/^\s*\{/.test(value)) return { [member]: value };
  try {
    return asObject(parseSourceJson(value)) ?? { [member]: value };
  } catch {
    // Models emit malformed JSON; the text is kept unchanged.
    return { [member]: value };
  }
}

/** Runs `work`, and reports its `BadInput`, and the parts that it left out, under the label of the message. */
export function inMessage(tree: TurnTree, label: string, work: (left: Leftovers) => void): void {
  const left: Leftovers = { members: [], problems: [] };
  try {
    work(left);
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
    left.problems.push(error.message);
  }
  left.problems.forEach((problem) => tree.report(`${label}: ${problem}`));
}
