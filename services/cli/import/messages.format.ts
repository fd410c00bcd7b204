/*
 * Conversations as a list of messages: {"messages": [{"role", "content", "tool_calls", …}]} as of OpenAI, Anthropic
 * and the AI SDK (`parts`), and ShareGPT's {"conversations": [{"from", "value"}]}. Either list may hold messages of
 * either form, because the variants of these formats mix them.
 */
import { admitText } from '#libs/kernel/text.ts';

import { hasContent, piecesOf, plainTextOf, type Leftovers, type Piece } from './content-parts.ts';
import {
  type About,
  type Conversation,
  conversationOf,
  inMessage,
  mapOf,
  objectOfLine,
  TurnTree,
} from './conversation.ts';
import { asObject, BadInput, parseSourceJson, sourceTime, textItems, type Place } from './import.model.ts';

type MessagesFormat = 'openai' | 'sharegpt';
type Json = Record<string, unknown>;
type Kind = 'user' | 'agent' | 'system' | 'call' | 'result';

/** Role names in use by the variants of the formats. */
const KINDS: Readonly<Record<string, Kind>> = {
  human: 'user',
  user: 'user',
  gpt: 'agent',
  assistant: 'agent',
  chatgpt: 'agent',
  model: 'agent',
  ai: 'agent',
  bot: 'agent',
  bard: 'agent',
  bing: 'agent',
  system: 'system',
  developer: 'system',
  function_call: 'call',
  tool_call: 'call',
  observation: 'result',
  tool: 'result',
  function: 'result',
  function_response: 'result',
  tool_response: 'result',
};

const LIST = { openai: 'messages', sharegpt: 'conversations' } as const;

/** @throws BadInput if no message of the conversation can be imported */
export function parseMessages(format: MessagesFormat, line: string, place: Place): Conversation {
  const source = objectOfLine(line);
  const { [LIST[format]]: list, system, ...rest } = source;
  if (!Array.isArray(list)) throw new BadInput(`no list of ${LIST[format]}`);
  const tree = new TurnTree(place);
  if (hasContent(system)) inMessage(tree, 'system', (left) => addSystem(tree, system, left));
  for (const [index, input] of list.entries()) {
    inMessage(tree, `message ${index + 1}`, (left) => addMessage(tree, input, source, left));
  }
  return conversationOf({ place, line, format }, { ...rest, tools: toolsOf(rest['tools']) }, tree);
}

function addSystem(tree: TurnTree, system: unknown, left: Leftovers): void {
  addPieces(tree, 'system', piecesOf(system, left), { sourceRole: 'system', metadata: restOf({}, left) });
}

const CONTENT = ['parts', 'content', 'value'] as const;
const TIMES = ['timestamp', 'created_at', 'createdAt', 'created'] as const;
const REASONS = ['reasoning_content', 'reasoning', 'thinking'] as const;

function addMessage(tree: TurnTree, input: unknown, source: Json, left: Leftovers): void {
  const one = asObject(input);
  if (one === null) throw new BadInput('it: not an object');
  const kind = kindOf(one);
  const content = CONTENT.find((name) => (name === 'parts' ? Array.isArray(one[name]) : hasContent(one[name])));
  const reason = REASONS.find((name) => typeof one[name] === 'string');
  const time = TIMES.find((name) => sourceTime(one[name]) !== null);
  const { role, from, name, tool_calls: calls, function_call: called, tool_call_id: id, refusal, ...other } = one;
  for (const used of [content, reason, time]) if (used !== undefined) delete other[used];
  // An item of OpenAI's responses has a type and no role; it is a part itself.
  const isItem = kind === null;
  const pieces: Piece[] = [
    ...(reason === undefined ? [] : reasoningOf(String(one[reason]))),
    ...piecesOf(isItem ? one : content && one[content], left),
    ...(typeof refusal === 'string' ? piecesOf(refusal, left) : []),
    ...callsOf(calls),
    ...(hasContent(called) ? callsOf([called]) : []),
  ];
  // Up to version 4, the AI SDK wrote the text of the parts into `content`, too.
  if (content === 'parts' && (!hasContent(one['content']) || plainTextOf(onlyText(pieces)) === one['content'])) {
    delete other['content'];
  }
  if (pieces.length === 0 && one[content ?? 'content'] == null) {
    const empty = CONTENT.some((field) => one[field] === '');
    if (!empty) throw new BadInput('neither content nor tool calls');
  }
  const about: Sender = {
    name: typeof name === 'string' && name !== '' ? name : undefined,
    time: one[time ?? ''] ?? source['created_at'] ?? source['created'],
    metadata: restOf(isItem ? {} : other, left),
    sourceRole: String(role ?? from),
  };
  if (kind === 'call') return addPieces(tree, 'agent', [...writtenCalls(one[content ?? '']), ...callsOf(calls)], about);
  if (kind !== 'result' || pieces.some((piece) => piece.kind === 'result')) {
    return addPieces(tree, kind ?? 'agent', pieces, about);
  }
  const { name: tool = null, ...unnamed } = about;
  const value = plainTextOf(pieces) ?? one[content ?? ''];
  const result: Piece = { kind: 'result', name: tool, value, id: typeof id === 'string' ? id : null };
  addPieces(tree, 'result', [result], unnamed);
}

/** @returns null for an item without a role. @throws BadInput */
function kindOf(one: Json): Kind | null {
  const role = one['role'] ?? one['from'];
  if (role === undefined && typeof one['type'] === 'string') return null;
  const name = typeof role === 'string' ? role.toLowerCase() : '';
  const kind = Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
  if (kind === undefined) throw new BadInput(`role: ${admitText(JSON.stringify(role) ?? 'missing', 40)} is not known`);
  return kind;
}

interface Sender extends About {
  readonly sourceRole: string;
}

/** Adds the pieces in their order. The first message gets the metadata, because the others repeat its origin. */
export function addPieces(
  tree: TurnTree,
  kind: Kind,
  pieces: readonly Piece[],
  { sourceRole, ...first }: Sender,
): void {
  let about: About = first;
  const added = (): void => {
    const { metadata: _metadata, ...next } = about;
    about = next;
  };
  // Anthropic's results of tools are parts of a user's message. They belong to the turn before it.
  const isUser = kind === 'user';
  const ordered = isUser ? pieces.toSorted((one, other) => order(one) - order(other)) : pieces;
  let hasWritten = false;
  for (const group of groupsOf(ordered)) {
    const [piece] = group;
    const items = group.flatMap((one) => ('items' in one ? one.items : []));
    if (piece?.kind === 'call') {
      tree.toolCall(
        { name: piece.name, args: mapOf(piece.args, 'arguments'), id: piece.id },
        isUser ? unnamed(about) : about,
      );
    } else if (piece?.kind === 'result') {
      tree.toolResult({ name: piece.name, value: mapOf(piece.value, 'output'), id: piece.id }, unnamed(about));
    } else if (kind === 'system') tree.system(items, { ...about, sourceRole });
    else if (isUser) tree.user(items, about);
    else tree.agent(items, about, piece?.kind === 'reasoning' ? 'agent_reasoning' : 'agent_response');
    hasWritten = true;
    added();
  }
  if (hasWritten) return;
  if (kind === 'system') tree.system([], { ...about, sourceRole });
  else if (isUser) tree.user([], about);
  else tree.agent([], about);
}

function order({ kind }: Piece): number {
  return kind === 'result' || kind === 'call' ? 0 : 1;
}

function unnamed({ name: _name, ...about }: About): About {
  return about;
}

/** Adjacent texts become one message, as do adjacent reasonings. */
function groupsOf(pieces: readonly Piece[]): Piece[][] {
  const groups: Piece[][] = [];
  for (const piece of pieces) {
    const last = groups.at(-1);
    if ('items' in piece && last?.[0]?.kind === piece.kind) last.push(piece);
    else groups.push([piece]);
  }
  return groups;
}

const onlyText = (pieces: readonly Piece[]): Piece[] => pieces.filter(({ kind }) => kind === 'text');

function reasoningOf(text: string): Piece[] {
  return text === '' ? [] : [{ kind: 'reasoning', items: textItems(text) }];
}

/** Calls of OpenAI (`function`, `custom`) and of frameworks that write name and arguments into the call itself. */
function callsOf(calls: unknown): Piece[] {
  if (!hasContent(calls)) return [];
  if (!Array.isArray(calls)) throw new BadInput('tool_calls: not a list');
  return calls.map((input, index): Piece => {
    const call = asObject(input) ?? {};
    const { name, ...rest } = asObject(call['function']) ?? asObject(call['custom']) ?? call;
    if (typeof name !== 'string' || name === '') throw new BadInput(`tool_calls.${index}: no name`);
    const args = rest['arguments'] ?? rest['input'] ?? rest['args'] ?? rest['parameters'];
    return { kind: 'call', name, args, id: typeof call['id'] === 'string' ? call['id'] : null };
  });
}

/** A message of ShareGPT that is a call, or a list of calls, as JSON in its text. */
function writtenCalls(value: unknown): Piece[] {
  if (value === undefined) return [];
  try {
    const json = typeof value === 'string' ? parseSourceJson(value) : value;
    const calls = callsOf(Array.isArray(json) ? json : [json]);
    if (calls.length > 0) return calls;
  } catch (error) {
    if (!(error instanceof BadInput)) throw error;
  }
  throw new BadInput('the call of a function is not JSON, or has no name');
}

/** The members that the message does not use, for its metadata. */
export function restOf(other: Json, { members }: Leftovers): Json {
  const rest = Object.fromEntries(Object.entries(other).filter(([, value]) => hasContent(value)));
  return { ...rest, ...(members.length > 0 && { parts_of_content: members }) };
}

/** Tool definitions, often as JSON in a string. */
function toolsOf(tools: unknown): unknown {
  if (tools === null || tools === '') return undefined;
  if (typeof tools !== 'string') return tools;
  try {
    return parseSourceJson(tools);
  } catch {
    return tools;
  }
}
