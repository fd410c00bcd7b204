/** ShareGPT-style conversations, one a line: {"conversations": [{"from", "value"}]}, with `id`, `system`, `tools`. */
import { z } from 'zod';

import { conversationOf, inMessage, mapOf, objectOfLine, TurnTree, type Conversation } from './conversation.ts';
import { BadInput, parseSourceJson, textItems, type Place } from './import.model.ts';

type Kind = 'user' | 'agent' | 'system' | 'call' | 'result';

/** Role names in use by the variants of the format. */
const KINDS: Readonly<Record<string, Kind>> = {
  human: 'user',
  user: 'user',
  gpt: 'agent',
  assistant: 'agent',
  chatgpt: 'agent',
  model: 'agent',
  bot: 'agent',
  bard: 'agent',
  bing: 'agent',
  system: 'system',
  function_call: 'call',
  tool_call: 'call',
  observation: 'result',
  tool: 'result',
  function_response: 'result',
  tool_response: 'result',
};

const turn = z.looseObject({ from: z.string(), value: z.string() });

/** @throws BadInput */
export function parseSharegpt(line: string, place: Place): Conversation {
  const source = objectOfLine(line);
  const { conversations, system, tools } = source;
  if (!Array.isArray(conversations)) throw new BadInput('no list of conversations');
  const tree = new TurnTree(place);
  if (typeof system === 'string' && system !== '') tree.system(textItems(system), { sourceRole: 'system' });
  for (const [index, input] of conversations.entries()) inMessage(index, () => add(tree, input, source));
  return conversationOf({ place, line, format: 'sharegpt' }, source, tree.messages, toolsOf(tools));
}

function add(tree: TurnTree, input: unknown, source: Record<string, unknown>): void {
  const parsed = turn.safeParse(input);
  if (!parsed.success) throw new BadInput('not {"from": text, "value": text}');
  const { from, value } = parsed.data;
  const kind = Object.hasOwn(KINDS, from.toLowerCase()) ? KINDS[from.toLowerCase()] : undefined;
  const about = { time: parsed.data['timestamp'] ?? source['created_at'] };
  switch (kind) {
    case 'user':
      return tree.user(textItems(value), about);
    case 'agent':
      return tree.agent(textItems(value), about);
    case 'system':
      return tree.system(textItems(value), { ...about, sourceRole: from });
    case 'call':
      return addCalls(tree, value, about);
    case 'result':
      return tree.toolResult({ name: null, value: mapOf(value, 'output'), id: null }, about);
    case undefined:
      throw new BadInput(`from ${JSON.stringify(from.slice(0, 40))} is not known`);
  }
}

const called = z.object({ name: z.string().min(1), arguments: z.unknown() });
const calledAtOnce = z.union([called.transform((one) => [one]), z.array(called).min(1)]);

function addCalls(tree: TurnTree, value: string, about: { readonly time: unknown }): void {
  let json: unknown;
  try {
    json = parseSourceJson(value);
  } catch {
    throw new BadInput('the call of a function is not JSON');
  }
  const calls = calledAtOnce.safeParse(json);
  if (!calls.success) throw new BadInput('the call of a function has no name');
  for (const { name, arguments: args } of calls.data) {
    tree.toolCall({ name, args: mapOf(args, 'arguments'), id: null }, about);
  }
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
