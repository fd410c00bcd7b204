import { isObject } from '#libs/kernel/json.ts';

import { type ChatRequest, SYSTEM_ROLE, toolName } from './chat-request.ts';
import { type EndpointError, sentenceOf } from './model.failures.ts';

/** Members of a request that it can do without. */
const OPTIONAL = [
  'temperature',
  'max_tokens',
  'max_completion_tokens',
  'reasoning_effort',
  'thinking_budget',
  'tool_choice',
  'stream_options',
];
const MESSAGE_MEMBERS: ReadonlySet<string> = new Set(['role', 'content', 'tool_calls', 'tool_call_id']);
const CALL_MEMBERS: ReadonlySet<string> = new Set(['id', 'type', 'function']);

const NO_TOOLS =
  /not? support(?:ed|s)? (?:for )?(?:tools?\b|tool.?us|tool.?call|function)|(?:tool.?(?:use|calling)|function.?calling|tools) (?:is|are) not (?:supported|enabled)|support tool use|enable-auto-tool-choice/i;
const NO_SYSTEM =
  /(?:system|developer)['"`]? (?:role|instruction|message|prompt)s?\b.{0,60}(?:not|n't|unsupported)|role.{0,40}does not support ['"`]?system|not support ['"`]?system['"`]?\b|only user and assistant roles/i;
const NO_STREAM = /stream(?:ing)?['"`]? .{0,60}not support|not support.{0,30}stream(?!_)|verified to stream/i;

/**
 * What an endpoint refuses by name, of what a request can do without: members of the request, of the messages of the model
 * (members that the endpoint has sent itself included), single tools, all tools, the role `system`, the stream. Empty if
 * the refusal names nothing of that.
 */
export function refusedBy(error: EndpointError, request: ChatRequest): string[] {
  const candidates = new Set([...OPTIONAL.filter((name) => name in request), ...opaqueMembers(request)]);
  const { tools = [] } = request;
  const places = placesIn(error.body);
  const sentence = sentenceOf(error);
  const named = [...candidates].filter((name) => places.some((place) => place.includes(name)));
  const inSentence = [...candidates].filter((name) => isNamed(name, sentence));
  const names = named.length > 0 ? named : inSentence;
  const ofTools = tools.filter((tool, index) => {
    const isPlace = places.some((place) => isToolPlace(place, index));
    return isPlace || isNamed(tool.function.name, sentence) || isToolInSentence(index, sentence);
  });
  if (names.length === 0 && tools.length > 0 && NO_TOOLS.test(sentence)) return ['tools', 'tool_choice'];
  if (names.length === 0 && ofTools.length > 0) return ofTools.map(toolName);
  if (names.length === 0 && request.messages[0]?.role === 'system' && NO_SYSTEM.test(sentence)) return [SYSTEM_ROLE];
  if ('stream' in request && (places.some((place) => place.at(-1) === 'stream') || NO_STREAM.test(sentence))) {
    return ['stream', 'stream_options'];
  }
  return names;
}

/** Members of messages and calls that Parley repeats without knowing them. */
function opaqueMembers({ messages }: ChatRequest): string[] {
  return messages.flatMap((message) => {
    const calls = Array.isArray(message['tool_calls']) ? (message['tool_calls'] as unknown[]) : [];
    return [
      ...Object.keys(message).filter((name) => !MESSAGE_MEMBERS.has(name)),
      ...calls.flatMap((call) => Object.keys(call as object).filter((name) => !CALL_MEMBERS.has(name))),
    ];
  });
}

/**
 * Where the faults are: `param` of OpenAI, `loc` of pydantic, `field` of Google, each as names and numbers:
 * `messages[1].reasoning` is `['messages', '1', 'reasoning']`.
 */
function placesIn(body: unknown, depth = 0): string[][] {
  if (depth > 6) return [];
  if (Array.isArray(body)) return body.slice(0, 20).flatMap((one) => placesIn(one, depth + 1));
  if (!isObject(body)) return [];
  const own = [body['param'], body['loc'], body['field']].flatMap((place) => {
    if (typeof place === 'string') return [place.split(/[.[\]]+/).filter((one) => one !== '')];
    return Array.isArray(place) ? [place.map(String)] : [];
  });
  const inner = ['error', 'errors', 'message', 'detail', 'details', 'fieldViolations', 'field_violations'];
  return [...own, ...inner.flatMap((name) => placesIn(body[name], depth + 1))];
}

function isNamed(name: string, sentence: string): boolean {
  const escaped = name.replaceAll(/[^A-Za-z0-9_]/g, String.raw`\$&`);
  return new RegExp(`(?<![A-Za-z0-9_-])${escaped}(?![A-Za-z0-9_-])`).test(sentence);
}

function isToolPlace(place: readonly string[], index: number): boolean {
  const at = place.indexOf('tools');
  return at >= 0 && place[at + 1] === String(index);
}

/** Google counts the functions of one tool. */
function isToolInSentence(index: number, sentence: string): boolean {
  const [, at] = /function_declarations\W(\d+)/.exec(sentence) ?? /\btools[.[](\d+)/.exec(sentence) ?? [];
  return at === String(index);
}
