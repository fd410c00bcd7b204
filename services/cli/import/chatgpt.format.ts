/*
 * ChatGPT's export, `conversations.json`: an array of conversations. `mapping` is a tree of messages by the ids of its
 * nodes; the branch that ends at `current_node` is what the person saw last, and the other branches are answers that
 * were generated again and questions that were edited. The ids of conversations and nodes are the same in all exports
 * of an account, so a later export adds what is new.
 */
import { z } from 'zod';

import { hasContent, piecesOf, type Leftovers, type Piece } from './content-parts.ts';
import { type About, type Conversation, conversationOf, inMessage, objectOfLine, TurnTree } from './conversation.ts';
import { asObject, BadInput, parsedBy, textItems, type Place } from './import.model.ts';
import { addPieces, restOf } from './messages.format.ts';

const node = z.looseObject({
  parent: z.string().nullish(),
  children: z.array(z.string()).nullish(),
  message: z.unknown(),
});
type Node = z.infer<typeof node>;

const message = z.looseObject({
  author: z.looseObject({ role: z.enum(['system', 'user', 'assistant', 'tool']), name: z.string().nullish() }),
  content: z.looseObject({ content_type: z.string() }),
  recipient: z.string().nullish(),
});
type Message = z.infer<typeof message>;

/** @throws BadInput if no message of the conversation can be imported */
export function parseChatgpt(line: string, place: Place): Conversation {
  const source = objectOfLine(line);
  const { mapping, current_node: current, create_time: created, ...others } = source;
  const id = source['conversation_id'] ?? source['id'];
  const identity = typeof id === 'string' && id !== '' ? id : undefined;
  const nodes = nodesOf(mapping);
  const tree = new TurnTree(place);
  const branch = branchOf(nodes, current);
  // Children in their order, but the shown branch last: the end of the channel is the end of the conversation.
  const pending = [...nodes].filter(([, { parent }]) => !parent || !nodes.has(parent)).map(([id]) => start(id));
  pending.sort((one, other) => Number(branch.has(other.id)) - Number(branch.has(one.id)));
  const below = childrenOf(nodes);
  const seen = new Set<string>();
  // A circle has no first message: it begins at any of its own.
  const rest = nodes
    .keys()
    .filter((one) => !seen.has(one))
    .map(start);
  const nextOf = (): Next | undefined => pending.pop() ?? rest.next().value;
  for (let next = nextOf(); next !== undefined; next = nextOf()) {
    const { id, position, parent, parentKey } = next;
    const one = nodes.get(id);
    if (one === undefined || seen.has(id)) continue;
    seen.add(id);
    tree.position = position;
    const before = tree.messages.length;
    const marks = { source_id: id, ...(parent && { source_parent_id: parent }) };
    const about = {
      marks: branch.has(id) ? marks : { ...marks, source_branch: 'other' },
      ...(next.hasAlternatives && parentKey !== undefined && { after: parentKey }),
    };
    if (identity !== undefined) tree.from(id);
    inMessage(tree, `message ${id}`, (left) => addNode(tree, one, about, left));
    const last = tree.messages.length > before ? tree.messages.at(-1)?.key : undefined;
    const own = below.get(id) ?? [];
    const children = own.map((child) => ({
      id: child,
      position: tree.position,
      parent: last === undefined ? parent : id,
      parentKey: last ?? parentKey,
      hasAlternatives: own.length > 1,
    }));
    children.sort((a, b) => Number(branch.has(a.id)) - Number(branch.has(b.id)));
    pending.push(...children.toReversed());
  }
  return conversationOf({ place, line, format: 'chatgpt', identity }, { ...others, created_at: created }, tree);
}

interface Next {
  readonly id: string;
  readonly position: TurnTree['position'];
  /** The last message above that was imported, by its id in the source and its key. */
  readonly parent: string | null;
  readonly parentKey: string | undefined;
  /** Whether its node has siblings. */
  readonly hasAlternatives: boolean;
}

function start(id: string): Next {
  return { id, position: { root: null, pending: [] }, parent: null, parentKey: undefined, hasAlternatives: false };
}

function nodesOf(mapping: unknown): ReadonlyMap<string, Node> {
  const entries = Object.entries(asObject(mapping) ?? {});
  if (entries.length === 0) throw new BadInput('no mapping of messages');
  return new Map(entries.map(([id, input]) => [id, parsedBy(node, input, id, 'mapping: ')]));
}

/** By `children`, then by `parent`: some programs that edit exports keep only one of them. */
function childrenOf(nodes: ReadonlyMap<string, Node>): ReadonlyMap<string, readonly string[]> {
  const found = new Map(
    [...nodes].map(([id, { children }]) => [id, new Set(children?.filter((one) => nodes.has(one)))]),
  );
  for (const [id, { parent }] of nodes) if (parent) found.get(parent)?.add(id);
  return new Map([...found].map(([id, children]) => [id, [...children]]));
}

/** The ids from `current` up to its root. Without `current`, every message counts as shown. */
function branchOf(nodes: ReadonlyMap<string, Node>, current: unknown): ReadonlySet<string> {
  if (typeof current !== 'string' || !nodes.has(current)) return new Set(nodes.keys());
  const branch = new Set<string>();
  for (let id: string | null | undefined = current; id && !branch.has(id); id = nodes.get(id)?.parent) branch.add(id);
  return branch;
}

/** Roots, and the hidden instructions that are empty, are no messages. */
function addNode(tree: TurnTree, { message: input }: Node, placed: About, left: Leftovers): void {
  if (input === null || input === undefined) return;
  const { id: _id, author, content, recipient, create_time: time, ...other } = parsedBy(message, input);
  const { role, name, ...rest } = author;
  const pieces = piecesOfMessage({ author, content, recipient }, left);
  const isShown = role !== 'system' || pieces.length > 0;
  if (!isShown) return;
  const metadata = restOf({ ...other, ...(hasContent(rest['metadata']) && { author: rest }) }, left);
  const about = { ...placed, name: name ?? undefined, time, metadata, sourceRole: role };
  addPieces(tree, role === 'assistant' ? 'agent' : role === 'tool' ? 'result' : role, pieces, about);
}

function piecesOfMessage({ author, content, recipient }: Message, left: Leftovers): Piece[] {
  const pieces = contentPieces(content, left);
  if (author.role === 'tool') {
    const texts = pieces.flatMap((piece) => ('items' in piece ? piece.items.map(({ text }) => text) : []));
    return [{ kind: 'result', name: author.name ?? null, value: texts.join('\n'), id: null }];
  }
  if (author.role !== 'assistant' || !recipient || recipient === 'all') return pieces;
  // A message of the assistant to another recipient than all is the call of a tool.
  const text = pieces.flatMap((piece) => ('items' in piece ? piece.items.map((item) => item.text) : [])).join('\n');
  return [{ kind: 'call', name: recipient, args: text, id: null }];
}

/** Content that is text; content of other types keeps its JSON. */
function contentPieces(content: Message['content'], left: Leftovers): Piece[] {
  const { content_type: type, parts, text, ...rest } = content;
  const others = Object.entries(rest).filter(([, value]) => hasContent(value));
  const isPlain = others.every(([name]) => name === 'language' || name === 'response_format_name');
  if (isPlain && others.length > 0) left.members.push(Object.fromEntries(others));
  if (isPlain && Array.isArray(parts) && !hasContent(text)) return piecesOf(parts, left);
  if (isPlain && typeof text === 'string' && !hasContent(parts)) return piecesOf(text, left);
  if (type === 'thoughts' || type === 'reasoning_recap') {
    const json = others.length === 1 && typeof rest['content'] === 'string' ? rest['content'] : JSON.stringify(content);
    return [{ kind: 'reasoning', items: textItems(json) }];
  }
  return piecesOf([content], left);
}
