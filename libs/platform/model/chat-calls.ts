import { randomInt } from 'node:crypto';

import { isNestedDeeperThan, isObject, type JsonObject, parsedJson } from '#libs/kernel/json.ts';
import { admitJson, admitText } from '#libs/kernel/text.ts';

import type { ModelPart, ModelTool } from './model.ts';

/** Of one answer; further ones are left out. */
const MAX_CALLS = 64;
/** Characters of the arguments of one call, and of all calls of an answer. */
const MAX_ARGUMENTS = 65_536;
const MAX_ALL_ARGUMENTS = 131_072;
/** Of arguments that are no object. */
const MAX_SHOWN = 500;
const MAX_NAME = 200;
/** Gateways put signatures of several thousand characters into ids. */
const MAX_ID = 16_384;
const ID_LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

type CallPart = Extract<ModelPart, { type: 'tool_call' | 'invalid_tool_call' }>;

export interface FinishedCall {
  readonly part: CallPart;
  /** As the endpoint sent it, with an id. */
  readonly sent: JsonObject;
}

interface Draft {
  readonly index: unknown;
  id: string;
  name: string;
  arguments: string;
  isTooLong: boolean;
  /** Members that Parley does not know, of the call and of its function. */
  readonly extra: Record<string, unknown>;
  readonly extraOfFunction: Record<string, unknown>;
}

/** An id for a call that has none: the strictest endpoint takes nine letters and digits. */
export function inventedCallId(): string {
  return Array.from({ length: 9 }, () => ID_LETTERS[randomInt(ID_LETTERS.length)]).join('');
}

/**
 * The tool calls of one answer, from deltas as endpoints send them: with and without `index`, `id` and `type`, with an id or
 * a name in each delta, several calls under one index, arguments in pieces, whole, or as an object.
 */
export class ChatCalls {
  readonly #offered: ReadonlyMap<string, ModelTool>;
  readonly #drafts: Draft[] = [];
  #argumentsLength = 0;
  /** Calls that were left out. */
  #left = 0;

  constructor(offered: ReadonlyMap<string, ModelTool>) {
    this.#offered = offered;
  }

  get isEmpty(): boolean {
    return this.#drafts.length === 0;
  }

  /** Whether there are calls, all with a name and arguments that are an object. */
  get areWhole(): boolean {
    const isWhole = (draft: Draft): boolean => draft.name !== '' && isObject(parsedJson(draft.arguments));
    return this.#drafts.length > 0 && this.#drafts.every(isWhole);
  }

  get left(): number {
    return this.#left;
  }

  /** An entry of `tool_calls`, or `{ function: function_call }`. */
  add(delta: unknown): void {
    if (!isObject(delta)) return;
    const called = isObject(delta['function']) ? delta['function'] : {};
    const id = typeof delta['id'] === 'string' ? admitText(delta['id'], MAX_ID) : '';
    const name = typeof called['name'] === 'string' ? called['name'] : '';
    const given = called['arguments'];
    const piece =
      typeof given === 'string' ? given : given === null || given === undefined ? '' : JSON.stringify(given);
    const known = this.#draftOf(delta['index'], id, name, piece);
    if (known === null && this.#drafts.length >= MAX_CALLS) {
      this.#left += 1;
      return;
    }
    const draft = known ?? this.#begin(delta['index']);
    if (draft.id === '') draft.id = id;
    draft.name = this.#nameOf(draft.name, name);
    this.#addArguments(draft, piece);
    keepOthers(draft.extra, delta, CALL_MEMBERS);
    keepOthers(draft.extraOfFunction, called, FUNCTION_MEMBERS);
  }

  finish(): FinishedCall[] {
    const ids = new Set<string>();
    return this.#drafts.map((draft) => {
      const id = draft.id === '' || ids.has(draft.id) ? inventedCallId() : admitText(draft.id);
      ids.add(id);
      const name = admitText(draft.name, MAX_NAME);
      const part = this.#partOf(draft, id, name);
      const called = { ...draft.extraOfFunction, name, arguments: repeatable(draft.arguments) };
      const sent = { ...draft.extra, id, type: 'function', function: called };
      return { part, sent };
    });
  }

  /** @returns null for a new call */
  #draftOf(index: unknown, id: string, name: string, piece: string): Draft | null {
    const isIndexed = index !== undefined && index !== null;
    const candidate = isIndexed
      ? this.#drafts.findLast((one) => one.index === index)
      : id === ''
        ? this.#drafts.at(-1)
        : this.#drafts.findLast((one) => one.id === id);
    if (candidate === undefined) return null;
    if (id !== '' && candidate.id === id) return candidate;
    // A new id begins a call if a name comes with it; some endpoints send another id with each piece of one call.
    if (id !== '' && candidate.id !== '') return name === '' ? candidate : null;
    const isAnother =
      name !== '' && name !== candidate.name && this.#isOffered(name) && this.#isOffered(candidate.name);
    if (isAnother) return null;
    if (name === '' || piece === '') return candidate;
    return isObject(parsedJson(candidate.arguments)) ? null : candidate;
  }

  #begin(index: unknown): Draft {
    const draft = { index, id: '', name: '', arguments: '', isTooLong: false, extra: {}, extraOfFunction: {} };
    this.#drafts.push(draft);
    return draft;
  }

  /** A name comes once, in pieces, or again with each piece of the arguments. */
  #nameOf(known: string, piece: string): string {
    if (piece === '' || known.length > MAX_NAME) return known;
    const joined = known + piece;
    return this.#isOffered(known) && !this.#isOffered(joined) ? known : joined;
  }

  #isOffered(name: string): boolean {
    return offeredTool(this.#offered, name) !== undefined;
  }

  #addArguments(draft: Draft, piece: string): void {
    if (piece === '') return;
    this.#argumentsLength += piece.length;
    draft.isTooLong ||=
      this.#argumentsLength > MAX_ALL_ARGUMENTS || draft.arguments.length + piece.length > MAX_ARGUMENTS;
    if (!draft.isTooLong) draft.arguments += piece;
  }

  #partOf(draft: Draft, id: string, name: string): CallPart {
    const tool = offeredTool(this.#offered, name);
    const input = admitText(draft.arguments);
    if (tool === undefined) return { type: 'invalid_tool_call', id, name, input, problem: 'unknown_tool' };
    const given = draft.isTooLong ? null : argumentsIn(draft);
    const valid =
      given === null ? null : 'jsonSchema' in tool.input ? given : (tool.input.safeParse(given).data ?? null);
    if (valid === null) return { type: 'invalid_tool_call', id, name: tool.name, input, problem: 'invalid_arguments' };
    return { type: 'tool_call', call: { id, name: tool.name, input: valid } };
  }
}

const CALL_MEMBERS: ReadonlySet<string> = new Set(['index', 'id', 'type', 'function']);
const FUNCTION_MEMBERS: ReadonlySet<string> = new Set(['name', 'arguments']);

function keepOthers(kept: Record<string, unknown>, given: JsonObject, known: ReadonlySet<string>): void {
  for (const name in given) {
    if (!known.has(name) && given[name] !== null && given[name] !== undefined) kept[name] = given[name];
  }
}

/** Models add marks of their own format to names: `functions.search:0<|call|>`. */
function offeredTool(offered: ReadonlyMap<string, ModelTool>, name: string): ModelTool | undefined {
  const bare = name
    .replace(/<\|.*$/s, '')
    .trim()
    .replace(/^functions[.:]/, '')
    .replace(/:\d+$/, '');
  return offered.get(name) ?? offered.get(bare);
}

/** Arguments that endpoints read again: strict ones refuse what is no object. */
function repeatable(args: string): string {
  return isObject(parsedJson(args)) ? args : JSON.stringify({ invalid: admitText(args, MAX_SHOWN) });
}

/** Levels of arguments; those of imports and requests have no more. */
const MAX_LEVELS = 100;

/** The arguments as an object, which also become valid for the endpoint that reads them again. @returns null for none */
function argumentsIn(draft: Draft): Record<string, unknown> | null {
  const text = draft.arguments.trim();
  if (text === '' || text === 'null') {
    draft.arguments = '{}';
    return {};
  }
  let value = parsedJson(text);
  // Some endpoints begin with `{}`, and let the arguments follow.
  if (value === undefined && text.startsWith('{}')) value = parsedJson((draft.arguments = text.slice(2)));
  // Written twice as JSON.
  if (typeof value === 'string') value = parsedJson((draft.arguments = value));
  if (!isObject(value) || isNestedDeeperThan(MAX_LEVELS, value)) return null;
  const safe = admitJson(value);
  if (safe !== value) draft.arguments = JSON.stringify(safe);
  return safe;
}
