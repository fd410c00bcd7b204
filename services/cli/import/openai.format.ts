/*
 * OpenAI-style conversations, one a line: {"messages": [{"role", "content", "tool_calls", "tool_call_id",
 * "name"}]}. Content is a text or a list of parts. The older `function_call` is supported, too.
 */
import { z } from 'zod';

import { conversationOf, inMessage, mapOf, objectOfLine, TurnTree } from './conversation.ts';
import type { About, Conversation } from './conversation.ts';
import { asObject, BadInput, parsedBy, textItems, type Place } from './import.model.ts';

const call = z.object({ name: z.string().min(1), arguments: z.unknown() });

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]).nullish(),
  name: z.string().nullish(),
  tool_calls: z.array(z.looseObject({ id: z.string().nullish(), function: call })).nullish(),
  function_call: call.nullish(),
  tool_call_id: z.string().nullish(),
  refusal: z.string().nullish(),
  reasoning_content: z.string().nullish(),
});
type Message = z.infer<typeof message>;

/** @throws BadInput */
export function parseOpenai(line: string, place: Place): Conversation {
  const source = objectOfLine(line);
  const { messages, tools } = source;
  if (!Array.isArray(messages)) throw new BadInput('no list of messages');
  const tree = new TurnTree(place);
  for (const [index, input] of messages.entries()) {
    inMessage(index, () => add(tree, parsedBy(message, input), source));
  }
  return conversationOf({ place, line, format: 'openai' }, source, tree.messages, tools);
}

function add(tree: TurnTree, one: Message, source: Record<string, unknown>): void {
  const content = contentOf(one);
  const about: About = {
    name: one.name ?? undefined,
    time: one['timestamp'] ?? one['created_at'] ?? source['created_at'] ?? source['created'],
  };
  switch (one.role) {
    case 'system':
    case 'developer':
      return tree.system(content, { ...about, sourceRole: one.role });
    case 'user':
      return tree.user(content, about);
    case 'assistant':
      return addAssistant(tree, one, content, about);
    case 'tool':
    case 'function': {
      const { name: _function, ...rest } = about;
      const id = one.tool_call_id ?? null;
      const value = mapOf(typeof one.content === 'string' ? one.content : plainText(content), 'output');
      return tree.toolResult({ name: one.name ?? null, value, id }, rest);
    }
  }
}

/** Order: reasoning, response, tool calls. */
function addAssistant(tree: TurnTree, one: Message, content: ReturnType<typeof contentOf>, about: About): void {
  const calls = [
    ...(one.tool_calls ?? []).map(({ id, function: called }) => ({ id: id ?? null, called })),
    ...(one.function_call ? [{ id: null, called: one.function_call }] : []),
  ];
  const reasoning = textItems(one.reasoning_content ?? '');
  if (content.length + calls.length + reasoning.length === 0) throw new BadInput('neither content nor tool calls');
  if (reasoning.length > 0) tree.agent(reasoning, about, 'agent_reasoning');
  if (content.length > 0) tree.agent(content, about);
  for (const { id, called } of calls) {
    tree.toolCall({ name: called.name, args: mapOf(called.arguments, 'arguments'), id }, about);
  }
}

function contentOf({ content, refusal }: Message): { readonly type: 'text'; readonly text: string }[] {
  const items = typeof content === 'string' ? textItems(content) : (content ?? []).flatMap(partItems);
  return items.length === 0 && refusal ? textItems(refusal) : items;
}

/** A part as text. Images and sounds lack the width and height that a media item requires. */
function partItems(part: Record<string, unknown> & { readonly type: string }): ReturnType<typeof textItems> {
  const { text, refusal } = part;
  if (typeof text === 'string') return textItems(text);
  if (typeof refusal === 'string') return textItems(refusal);
  const image = part['image_url'];
  const url = typeof image === 'string' ? image : asObject(image)?.['url'];
  if (typeof url !== 'string') return textItems(`[${part.type}]`);
  const inline = /^data:([^;,]*)/.exec(url);
  return textItems(inline === null ? `[image] ${url}` : `[${inline[1] || 'image'}, ${url.length} characters, inline]`);
}

function plainText(items: readonly { readonly text: string }[]): string {
  return items.map(({ text }) => text).join('\n');
}
