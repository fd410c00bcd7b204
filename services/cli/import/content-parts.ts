/*
 * The parts of a message's content, as OpenAI (chat completions and responses), Anthropic and the AI SDK write them.
 * Parts of other types keep their JSON as text.
 */
import { admitText } from '#libs/kernel/text.ts';

import { asObject, BadInput, textItems } from './import.model.ts';

export type Text = ReturnType<typeof textItems>[number];

export type Piece =
  | { readonly kind: 'text' | 'reasoning'; readonly items: readonly Text[] }
  | { readonly kind: 'call'; readonly name: string; readonly args: unknown; readonly id: string | null }
  | { readonly kind: 'result'; readonly name: string | null; readonly value: unknown; readonly id: string | null };

/** The rest after reading the parts of one message: members that no piece has, and parts that are too large to keep. */
export interface Leftovers {
  /** By the number of the part, from 1. */
  readonly members: Record<string, unknown>[];
  readonly problems: string[];
}

type Part = Readonly<Record<string, unknown>>;

/** A part that is kept as JSON fits into one text item. */
const MAX_JSON = 131_072;

/** @throws BadInput if the content is neither a text nor a list of parts nor one part */
export function piecesOf(content: unknown, left: Leftovers): Piece[] {
  if (content === null || content === undefined) return [];
  if (typeof content === 'string') return textPiece(content);
  if (Array.isArray(content)) return content.flatMap((part, index) => partPieces(part, index, left));
  if (asObject(content) === null) throw new BadInput('content: neither a text nor parts');
  return partPieces(content, 0, left);
}

/** The text of pieces that are all text; null otherwise. */
export function plainTextOf(pieces: readonly Piece[]): string | null {
  const texts = pieces.map((piece) => (piece.kind === 'text' ? piece.items.map(({ text }) => text).join('') : null));
  return texts.every((text) => text !== null) ? texts.join('\n') : null;
}

function partPieces(input: unknown, index: number, left: Leftovers): Piece[] {
  if (typeof input === 'string') return textPiece(input);
  const part = asObject(input);
  const found = part === null ? null : knownPart(part, String(part['type'] ?? ''));
  if (part === null || found === null) return jsonPiece(input, left);
  const rest = Object.entries(part).filter(([name, value]) => !found.used.includes(name) && hasContent(value));
  if (rest.length > 0) left.members.push({ part: index + 1, ...Object.fromEntries(rest) });
  return found.pieces;
}

export function hasContent(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '' && !(Array.isArray(value) && value.length === 0);
}

function jsonPiece(part: unknown, left: Leftovers): Piece[] {
  const json = JSON.stringify(part);
  if (json.length <= MAX_JSON) return textPiece(json);
  const type = asObject(part)?.['type'];
  left.problems.push(
    `a part${typeof type === 'string' ? ` of type ${admitText(type, 40)}` : ''} of ${json.length} characters is left out`,
  );
  return [];
}

interface KnownPart {
  readonly pieces: Piece[];
  /** Members that the pieces hold; all other members are leftovers. */
  readonly used: readonly string[];
}

const REASONING = new Set(['reasoning', 'thinking', 'reasoning_text']);
const TEXT = new Set(['text', 'input_text', 'output_text', 'summary_text', 'refusal', '']);
const CALLS = new Set([
  'tool_use',
  'server_tool_use',
  'mcp_tool_use',
  'tool-call',
  'function_call',
  'custom_tool_call',
]);

function knownPart(part: Part, type: string): KnownPart | null {
  if (type === 'step-start') return { pieces: [], used: ['type'] };
  if (TEXT.has(type)) return textPart(part);
  if (REASONING.has(type)) return reasoningPart(part);
  if (type === 'image_url' || type === 'input_image') return imagePart(part);
  if (CALLS.has(type)) return callPart(part);
  if (type === 'tool-result') return sdkResult(part);
  if (/(^|_)tool_result$|^(function|custom_tool)_call_output$/.test(type)) return resultPart(part);
  if (type === 'tool-invocation') return invocationPart(part);
  if (type === 'dynamic-tool') return toolPart(part, part['toolName']);
  return type.startsWith('tool-') ? toolPart(part, type.slice('tool-'.length)) : null;
}

/** Assistants' texts are `{"text": {"value", "annotations"}}`. */
function textPart(part: Part): KnownPart | null {
  for (const name of ['text', 'refusal', 'value']) {
    const text = part[name];
    if (typeof text === 'string') return { pieces: textPiece(text), used: ['type', name] };
  }
  const { value, ...rest } = asObject(part['text']) ?? {};
  const isWhole = Object.values(rest).every((one) => !hasContent(one));
  return typeof value === 'string' && isWhole ? { pieces: textPiece(value), used: ['type', 'text'] } : null;
}

function reasoningPart(part: Part): KnownPart | null {
  for (const name of ['thinking', 'text', 'reasoning', 'summary']) {
    const text = typeof part[name] === 'string' ? part[name] : textsOf(part[name]);
    if (text === null) continue;
    return { pieces: text === '' ? [] : [{ kind: 'reasoning', items: textItems(text) }], used: ['type', name] };
  }
  return null;
}

/** Parts that are nothing but texts, such as the summary of a reasoning. */
function textsOf(value: unknown): string | null {
  if (!Array.isArray(value) || value.length === 0) return null;
  const left: Leftovers = { members: [], problems: [] };
  const text = plainTextOf(piecesOf(value, left));
  return left.members.length + left.problems.length === 0 ? text : null;
}

/** The address alone; an image in the part itself keeps its JSON. */
function imagePart(part: Part): KnownPart | null {
  const image = part['image_url'];
  const { url, ...rest } = typeof image === 'string' ? { url: image } : (asObject(image) ?? {});
  if (typeof url !== 'string' || /^data:/i.test(url) || Object.keys(rest).length > 0) return null;
  return { pieces: textPiece(`[image] ${url}`), used: ['type', 'image_url'] };
}

function callPart(part: Part): KnownPart | null {
  const name = text(part['name']) ?? text(part['toolName']);
  if (name === null) return null;
  const args = ['input', 'arguments', 'args'].find((one) => part[one] !== undefined) ?? 'input';
  const id = ['call_id', 'toolCallId', 'id'].find((one) => text(part[one]) !== null) ?? 'id';
  const call: Piece = { kind: 'call', name, args: part[args] ?? {}, id: text(part[id]) };
  return { pieces: [call], used: ['type', 'name', 'toolName', args, id] };
}

function resultPart(part: Part): KnownPart | null {
  const id = text(part['tool_use_id']) ?? text(part['call_id']);
  const member = part['content'] === undefined ? 'output' : 'content';
  const value = part[member] ?? '';
  const pieces: Piece[] = [{ kind: 'result', name: text(part['name']), value: textsOf(value) ?? value, id }];
  return id === null ? null : { pieces, used: ['type', 'tool_use_id', 'call_id', 'name', member] };
}

function sdkResult(part: Part): KnownPart | null {
  const id = text(part['toolCallId']);
  const member = part['output'] === undefined ? 'result' : 'output';
  const pieces: Piece[] = [{ kind: 'result', name: text(part['toolName']), value: sdkOutput(part[member]), id }];
  return id === null ? null : { pieces, used: ['type', 'toolCallId', 'toolName', member] };
}

/** `{"type": "text" | "json", "value"}` is its value; results of other types, such as errors, keep their form. */
function sdkOutput(output: unknown): unknown {
  const { type, value, ...rest } = asObject(output) ?? {};
  return (type === 'text' || type === 'json') && Object.keys(rest).length === 0 ? value : output;
}

/** A call with its result: `tool-<name>` and `dynamic-tool`. */
function toolPart(part: Part, toolName: unknown): KnownPart | null {
  const [name, id] = [text(toolName), text(part['toolCallId'])];
  if (name === null || id === null) return null;
  const pieces: Piece[] = [{ kind: 'call', name, args: part['input'] ?? {}, id }];
  const { output, errorText: error } = part;
  if (output !== undefined) pieces.push({ kind: 'result', name, value: output, id });
  else if (error !== undefined) pieces.push({ kind: 'result', name, value: { error }, id });
  const used = ['type', 'toolName', 'toolCallId', 'input', 'state', output === undefined ? 'errorText' : 'output'];
  return { pieces, used };
}

/** The AI SDK before version 5. */
function invocationPart(part: Part): KnownPart | null {
  const call = asObject(part['toolInvocation']);
  const found = call && toolPart({ ...call, input: call['args'], output: call['result'] }, call['toolName']);
  return found && { pieces: found.pieces, used: ['type', 'toolInvocation'] };
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function textPiece(value: string): Piece[] {
  return value === '' ? [] : [{ kind: 'text', items: textItems(value) }];
}
