/** What a line of a JSON-lines format holds: a channel, and all that is said in it. */
import { createChannelBody } from '#libs/features/channels/index.ts';

import { asObject, BadInput, fitsAsMap, shortName } from './import.model.ts';
import type { ChannelDraft, MessageDraft, Place } from './import.model.ts';
import { parseSourceJson } from './source-json.ts';

export interface Conversation {
  readonly channel: ChannelDraft;
  readonly messages: readonly MessageDraft[];
}

/** @throws BadInput if the line is no JSON object */
export function objectOfLine(line: string): Record<string, unknown> {
  const found = asObject(parseSourceJson(line));
  if (found === null) throw new BadInput('not a JSON object');
  return found;
}

/**
 * The channel of a conversation. The line itself is its identity, with the file and the place: the same line
 * again, or another file of the same name, is another conversation.
 *
 * @param tools those that the agent could call; what is more than a channel takes becomes its text, or is left out
 * @throws BadInput for a conversation of nothing, or a channel that the API would not take
 */
export function conversationOf(
  { place, line, format }: { readonly place: Place; readonly line: string; readonly format: string },
  source: Record<string, unknown>,
  messages: readonly MessageDraft[],
  tools?: unknown,
): Conversation {
  if (messages.length === 0) throw new BadInput('no messages');
  const id = source['id'] ?? source['conversation_id'];
  const title = source['title'];
  const meta = {
    source_format: format,
    source_file: place.file,
    source_line: place.line,
    ...((typeof id === 'string' || typeof id === 'number') && { source_id: id }),
    ...(JSON.isRawJSON(id) && { source_id: id.rawJSON }),
  };
  const described = tools === undefined ? [] : [{ tools }, { tools: JSON.stringify(tools) }, { tools_left_out: true }];
  const parsed = createChannelBody.safeParse({
    name: typeof title === 'string' && title.trim() !== '' ? shortName(title) : nameOf(messages, place),
    participants: participantsOf(messages),
    meta_data: described.map((more) => ({ ...meta, ...more })).find(fitsAsMap) ?? meta,
  });
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new BadInput(`channel: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is invalid'}`);
  }
  const key = `${format}\n${place.file}\n${place.line}\n${line}`;
  return { channel: { key, place, body: parsed.data }, messages };
}

function nameOf(messages: readonly MessageDraft[], { file, line }: Place): string {
  const first = messages.find(({ body }) => body.content_role === 'user_message') ?? messages[0];
  const text = first?.body.content.find((item) => item.type === 'text')?.text ?? '';
  return shortName(text) || `${file}, line ${line}`;
}

/** Everybody who says something, once. */
function participantsOf(messages: readonly MessageDraft[]): object[] {
  const found = new Map<string, object>();
  for (const { participant } of messages.map(({ body }) => body)) {
    if (participant?.type !== 'non_authenticated_user' && participant?.type !== 'external_agent') continue;
    found.set(JSON.stringify(participant), participant);
  }
  return [...found.values()].slice(0, 1_000);
}
