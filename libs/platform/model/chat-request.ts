import { createHash } from 'node:crypto';

import { isObject, type JsonObject } from '#libs/kernel/json.ts';

import { admitText } from '#libs/kernel/text.ts';

import type { ModelCall, ModelMessage, ModelTool, ModelToolCall } from './model.ts';
import { strictSchemaOf } from './tool-schema.ts';

/** The body of a request for chat completions. */
export interface ChatRequest extends Record<string, unknown> {
  readonly model: string;
  readonly messages: readonly WireMessage[];
  readonly tools?: readonly WireTool[];
}

export interface WireMessage extends Record<string, unknown> {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: unknown;
}

export interface WireTool {
  readonly type: 'function';
  readonly function: { readonly name: string; readonly description: string; readonly parameters: JsonObject };
}

interface RequestContext {
  readonly model: string;
  /** Of messages that this endpoint and model have sent. */
  readonly source: string;
  /** Members to leave out, by the names of `refusedBy`. */
  readonly omitted: ReadonlySet<string>;
}

/** A message that would be empty, which strict endpoints refuse. */
const NO_TEXT = '(no text)';
/** Precedes an answer without its question: strict endpoints require that a user begins. */
const CUT_BEGINNING = '(The beginning of the conversation is not shown.)';
const SAFE_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Members of messages and calls that every endpoint takes. */
const MESSAGE_MEMBERS: ReadonlySet<string> = new Set(['role', 'content', 'tool_calls']);
const CALL_MEMBERS: ReadonlySet<string> = new Set(['id', 'type', 'function']);

/** Names for what may be left out and is no member of the request. */
export const SYSTEM_ROLE = 'role system';
export function toolName({ function: { name, parameters } }: WireTool): string {
  const digest = createHash('sha256').update(JSON.stringify(parameters)).digest('hex').slice(0, 8);
  return `tool ${name} ${digest}`;
}

/** A request that the strictest endpoints accept. */
export function requestOf(call: ModelCall, { model, source, omitted }: RequestContext): ChatRequest {
  const messages = messagesOf(call, source, omitted);
  const offered = call.tools.map(wireTool).filter((tool) => !omitted.has(toolName(tool)));
  // Also when the tools have disappeared since: a history with calls needs them.
  const tools = offered.length > 0 ? offered : calledTools(messages);
  const mayCall = call.mayCallTools !== false && offered.length > 0;
  const { temperature, reasoningEffort, thinkingBudget, maxOutputTokens } = call;
  const limit = omitted.has('max_tokens') ? 'max_completion_tokens' : 'max_tokens';
  const body = {
    model,
    messages,
    ...(tools.length > 0 && { tools, ...(!mayCall && { tool_choice: 'none' }) }),
    ...(temperature !== null && { temperature }),
    ...(maxOutputTokens !== undefined && { [limit]: maxOutputTokens }),
    ...(reasoningEffort !== null && { reasoning_effort: reasoningEffort }),
    ...(thinkingBudget !== null && { thinking_budget: thinkingBudget }),
    stream: true,
    stream_options: { include_usage: true },
  };
  return Object.fromEntries(Object.entries(body).filter(([name]) => !omitted.has(name))) as ChatRequest;
}

function wireTool({ name, description, input }: ModelTool): WireTool {
  const parameters = strictSchemaOf(input) ?? { type: 'object', properties: {} };
  return { type: 'function', function: { name, description, parameters } };
}

function calledTools(messages: readonly WireMessage[]): WireTool[] {
  const calls = messages.flatMap(({ tool_calls: given }) => (Array.isArray(given) ? (given as WireCall[]) : []));
  const names = new Set(calls.map((call) => call.function.name));
  const parameters = { type: 'object', properties: {} };
  return [...names].map((name) => ({
    type: 'function',
    function: { name, description: 'Not available any longer.', parameters },
  }));
}

function messagesOf(
  { instructions, messages }: ModelCall,
  source: string,
  omitted: ReadonlySet<string>,
): WireMessage[] {
  const ids = new Map<string, string>();
  const wire = messages.flatMap((message) => wireMessage(message, { source, omitted, ids }) ?? []).reduce(merged, []);
  if (wire[0]?.role !== 'user') wire.unshift({ role: 'user', content: CUT_BEGINNING });
  if (instructions.trim() === '') return wire;
  if (!omitted.has(SYSTEM_ROLE)) return [{ role: 'system', content: instructions }, ...wire];
  const first: WireMessage = { role: 'user', content: instructions };
  return [first, ...wire].reduce<WireMessage[]>(merged, []);
}

/** @returns null for an answer without anything */
function wireMessage(
  message: ModelMessage,
  { source, omitted, ids }: Pick<RequestContext, 'source' | 'omitted'> & { readonly ids: Map<string, string> },
): WireMessage | null {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: textOr(message.text, NO_TEXT) };
    case 'tool': {
      const id = ids.get(message.callId) ?? idOf(message.callId);
      return { role: 'tool', tool_call_id: id, content: textOr(message.result, NO_TEXT) };
    }
    case 'assistant': {
      const sent: JsonObject = message.sent?.source === source ? message.sent.message : {};
      const sentCalls = Array.isArray(sent['tool_calls']) ? (sent['tool_calls'] as unknown[]) : [];
      const calls = message.toolCalls.map((call, index) => wireCall(call, sentCalls[index], omitted));
      for (const [index, { id }] of message.toolCalls.entries()) ids.set(id, calls[index]!.id);
      const content = contentOf(sent['content']) ?? contentOf(message.text);
      const others = Object.entries(sent).filter(([name]) => !MESSAGE_MEMBERS.has(name) && !omitted.has(name));
      if (calls.length === 0 && content === null) return null;
      const members = { ...Object.fromEntries(others), ...(calls.length > 0 && { tool_calls: calls }) };
      return { role: 'assistant', content, ...members };
    }
  }
}

interface WireCall extends Record<string, unknown> {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

/** @param sent the call as the endpoint sent it */
function wireCall({ id, name, input }: ModelToolCall, sent: unknown, omitted: ReadonlySet<string>): WireCall {
  const given = isObject(sent) ? sent : {};
  const called = isObject(given['function']) ? given['function'] : {};
  const args = called['arguments'];
  const sentName = typeof called['name'] === 'string' ? called['name'] : name;
  return {
    ...Object.fromEntries(Object.entries(given).filter(([one]) => !CALL_MEMBERS.has(one) && !omitted.has(one))),
    id: typeof given['id'] === 'string' ? given['id'] : idOf(id),
    type: 'function',
    function: {
      ...called,
      name: safeName(sentName),
      arguments: typeof args === 'string' ? args : JSON.stringify(input),
    },
  };
}

/** A name that a model invented, as strict endpoints accept it. */
function safeName(name: string): string {
  if (SAFE_NAME.test(name)) return name;
  return admitText(name.replaceAll(/[^a-zA-Z0-9_-]+/g, '_'), 64) || 'unknown';
}

/** An id that strict endpoints accept: the same one for the same call. */
function idOf(callId: string): string {
  if (/^[a-zA-Z0-9]{9}$/.test(callId)) return callId;
  return createHash('sha256').update(callId).digest('hex').slice(0, 9);
}

function textOr(text: string, other: string): string {
  return text.trim() === '' ? other : text;
}

function contentOf(content: unknown): unknown {
  if (typeof content === 'string') return content.trim() === '' ? null : content;
  return Array.isArray(content) && content.length > 0 ? content : null;
}

/** Joins a message with the one before it if both are of the same role: strict endpoints require that roles alternate. */
function merged(messages: WireMessage[], message: WireMessage): WireMessage[] {
  const last = messages.at(-1);
  if (last === undefined || last.role !== message.role || message.role === 'tool' || 'tool_calls' in last) {
    messages.push(message);
    return messages;
  }
  messages[messages.length - 1] = { ...last, ...message, content: joinedContent(last.content, message.content) };
  return messages;
}

function joinedContent(first: unknown, second: unknown): unknown {
  if (first === null || second === null) return first ?? second;
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`;
  const items = [first, second].map((one) => (typeof one === 'string' ? [{ type: 'text', text: one }] : one));
  return items.flat();
}
