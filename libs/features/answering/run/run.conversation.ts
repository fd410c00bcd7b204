import { z } from 'zod';

import { type InteractionQueries, parseInteractionId } from '#libs/features/channels/index.ts';
import { type ModelMessage, untrusted } from '#libs/platform/model/index.ts';

import type { Run } from './run.ts';

/** Interactions before the message that are looked through. */
const MAX_BEFORE = 60;

const interaction = z.object({
  interaction_id: z.string().nullable(),
  content_role: z.string(),
  participant: z.looseObject({
    type: z.string(),
    agent_id: z.string().optional(),
    agent_metadata: z.looseObject({ name: z.string().nullish() }).nullish(),
  }),
  content: z.array(z.looseObject({ type: z.string() })),
});
type ShownInteraction = z.infer<typeof interaction>;

type ConversationQueries = Pick<InteractionQueries, 'interaction' | 'list'>;

/**
 * The messages of users and agents up to the one that the run answers, oldest first. Null if that does not exist.
 *
 * @throws Fault `store_unavailable`
 */
export async function conversationOf(queries: ConversationQueries, run: Run): Promise<ModelMessage[] | null> {
  const { organizationId, channelId, agentId, asked: question } = run;
  // The asking agent decides what of the channel the asked one gets to know.
  if (question !== null) return [ofAgent(question.askedBy.agentName, question.question)];
  const ref = parseInteractionId(run.messageId);
  const shown = { reader: null, includeIncomplete: true };
  const asked = ref?.channelId === channelId ? await queries.interaction(organizationId, ref, shown) : null;
  if (ref === null || asked === null) return null;
  const before = await queries.list(
    organizationId,
    channelId,
    { order: 'desc', beforeSequence: ref.sequence, includeIncomplete: false, includeToolCallUpdates: false },
    { size: MAX_BEFORE, offset: 0, after: null },
    null,
  );
  const items = (before?.items ?? []).toReversed().map(parsed);
  const late = run.lane === null ? [] : await lateAnswers(queries, run, ref.sequence);
  const earlier = withAnswers(items, late).flatMap((one) => messageOf(one, agentId) ?? []);
  return [...earlier, messageOfOther(parsed(asked))];
}

/** Answers that were given after the message, while its run waited in its lane. */
async function lateAnswers(
  queries: ConversationQueries,
  { organizationId, channelId }: Run,
  afterSequence: number,
): Promise<ShownInteraction[]> {
  const contentRole = 'agent_response' as const;
  const filter = { order: 'asc' as const, afterSequence, contentRole };
  const found = await queries.list(
    organizationId,
    channelId,
    { ...filter, includeIncomplete: false, includeToolCallUpdates: false },
    { size: MAX_BEFORE, offset: 0, after: null },
    null,
  );
  return (found?.items ?? []).map(parsed);
}

/** Each answer after the last interaction of its turn; those of other turns are left out. */
function withAnswers(items: readonly ShownInteraction[], answers: readonly ShownInteraction[]): ShownInteraction[] {
  return items.flatMap((one, index) => {
    const isLast = !items.slice(index + 1).some(({ interaction_id: turn }) => turn === one.interaction_id);
    return isLast ? [one, ...answers.filter(({ interaction_id: turn }) => turn === one.interaction_id)] : [one];
  });
}

/** @returns null for what is no message: reasoning, tool calls, notifications */
function messageOf(shown: ShownInteraction, agentId: string): ModelMessage | null {
  const { content_role: role, participant } = shown;
  if (role !== 'user_message' && role !== 'agent_response') return null;
  const text = textOf(shown);
  if (text === '') return null;
  const isOwn = role === 'agent_response' && participant.agent_id === agentId;
  return isOwn ? { role: 'assistant', text, toolCalls: [] } : messageOfOther(shown);
}

function messageOfOther(shown: ShownInteraction): ModelMessage {
  const { type, agent_id: id, agent_metadata: metadata } = shown.participant;
  if (type !== 'agent' && type !== 'external_agent') return { role: 'user', text: textOf(shown) };
  return ofAgent(metadata?.name ?? id ?? null, textOf(shown));
}

/**
 * The text of another agent may have been written to make this one do something: it is data, as the text of tools is.
 */
function ofAgent(agent: string | null, message: string): ModelMessage {
  return { role: 'user', text: untrusted({ agent, message }) };
}

function parsed(json: Buffer): ShownInteraction {
  return interaction.parse(JSON.parse(json.toString()));
}

const media = z.object({ meta_data: z.object({ description: z.string(), mime_type: z.string() }) });

function textOf({ content }: ShownInteraction): string {
  const parts = content.map((item) => {
    if (item.type === 'text') return String(item['text'] ?? '');
    const file = item.type === 'media' ? media.safeParse(item).data : undefined;
    return file === undefined ? '' : `[File: ${file.meta_data.description}, ${file.meta_data.mime_type}]`;
  });
  return parts.filter((part) => part !== '').join('\n');
}
