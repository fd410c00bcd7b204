import { z } from 'zod';

import { type InteractionQueries, parseInteractionId } from '#libs/features/channels/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
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
    user_id: z.string().optional(),
    agent_metadata: z.looseObject({ name: z.string().nullish() }).nullish(),
  }),
  content: z.array(z.looseObject({ type: z.string() })),
});
type ShownInteraction = z.infer<typeof interaction>;

type ConversationQueries = Pick<InteractionQueries, 'interaction' | 'list'>;

/** The message that a run answers. */
export interface RunMessage {
  readonly content: ShownInteraction['content'];
  /** The user that asks; null for an agent, a service and a person without an account. */
  readonly userId: EntityId | null;
}

/** The message that a run answers, or the question of the agent that asks. Null if the message does not exist. */
export async function messageOf(
  queries: Pick<InteractionQueries, 'interaction'>,
  run: Run,
): Promise<RunMessage | null> {
  const found = await answeredMessage(queries, run);
  if (found === null) return null;
  const { participant } = found;
  const userId = participant.type === 'authenticated_user' ? (participant.user_id ?? null) : null;
  const content = run.asked === null ? found.content : [{ type: 'text', text: run.asked.question }];
  return { content, userId };
}

async function answeredMessage(
  queries: Pick<InteractionQueries, 'interaction'>,
  { organizationId, channelId, messageId }: Run,
): Promise<ShownInteraction | null> {
  const ref = parseInteractionId(messageId);
  const shown = { reader: null, includeIncomplete: true };
  const found = ref?.channelId === channelId ? await queries.interaction(organizationId, ref, shown) : null;
  return found && parsed(found);
}

/** A message of a conversation, with its content items. */
export interface Said {
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly content: readonly { readonly type: string }[];
}

/**
 * The messages of users and agents up to the one that the run answers, oldest first. Null if that does not exist.
 *
 * @throws Fault `store_unavailable`
 */
export async function conversationOf(queries: ConversationQueries, run: Run): Promise<ModelMessage[] | null> {
  const said = await saidTo(queries, run);
  const worded = said?.filter(({ text }, index) => text !== '' || index === said.length - 1) ?? null;
  return worded && worded.map(({ role, text }) => (role === 'user' ? { role, text } : { role, text, toolCalls: [] }));
}

/** As {@link conversationOf}, also messages without words: payments, custom content. */
export async function saidTo(queries: ConversationQueries, run: Run): Promise<Said[] | null> {
  const { organizationId, channelId, agentId, asked: question } = run;
  // The asking agent decides what of the channel the asked one gets to know.
  if (question !== null) {
    const content = [{ type: 'text', text: question.question }];
    return [{ role: 'user', text: ofAgent(question.askedBy.agentName, question.question), content }];
  }
  const ref = parseInteractionId(run.messageId);
  const asked = await answeredMessage(queries, run);
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
  const earlier = withAnswers(items, late).flatMap((one) => saidIn(one, agentId) ?? []);
  return [...earlier, messageOfOther(asked)];
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
function saidIn(shown: ShownInteraction, agentId: string): Said | null {
  const { content_role: role, participant, content } = shown;
  if ((role !== 'user_message' && role !== 'agent_response') || content.length === 0) return null;
  const isOwn = role === 'agent_response' && participant.agent_id === agentId;
  return isOwn ? { role: 'assistant', text: textOf(shown), content } : messageOfOther(shown);
}

function messageOfOther(shown: ShownInteraction): Said {
  const { type, agent_id: id, agent_metadata: metadata } = shown.participant;
  const [role, content, text] = ['user' as const, shown.content, textOf(shown)];
  if ((type !== 'agent' && type !== 'external_agent') || text === '') return { role, text, content };
  return { role, text: ofAgent(metadata?.name ?? id ?? null, text), content };
}

/**
 * The text of another agent may have been written to make this one do something: it is data, as the text of tools is.
 */
function ofAgent(agent: string | null, message: string): string {
  return untrusted({ agent, message });
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
