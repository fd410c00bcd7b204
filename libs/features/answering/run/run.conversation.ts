import {
  type InteractionQueries,
  interactionOf,
  parseInteractionId,
  type StoredInteraction,
} from '#libs/features/channels/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { type ModelMessage, untrusted } from '#libs/platform/model/index.ts';

import type { Run } from './run.ts';

/** Interactions before the message that are looked through. */
const MAX_BEFORE = 60;

type ConversationQueries = Pick<InteractionQueries, 'interaction' | 'list'>;

/** The message that a run answers. */
export interface RunMessage {
  readonly content: StoredInteraction['content'];
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
  const userId = participant.type === 'authenticated_user' ? participant.user_id : null;
  const content = run.asked === null ? found.content : [{ type: 'text' as const, text: run.asked.question }];
  return { content, userId };
}

async function answeredMessage(
  queries: Pick<InteractionQueries, 'interaction'>,
  { organizationId, channelId, messageId }: Run,
): Promise<StoredInteraction | null> {
  const ref = parseInteractionId(messageId);
  const shown = { reader: null, includeIncomplete: true };
  const found = ref?.channelId === channelId ? await queries.interaction(organizationId, ref, shown) : null;
  return found && interactionOf(found);
}

/** A message of a conversation, with its content items. */
export interface ConversationMessage {
  readonly role: 'user' | 'assistant';
  readonly text: string;
  readonly content: StoredInteraction['content'];
}

/**
 * The messages of users and agents up to the one that the run answers, oldest first. Null if that does not exist.
 *
 * @throws Fault `store_unavailable`
 */
export async function conversationOf(queries: ConversationQueries, run: Run): Promise<ModelMessage[] | null> {
  const messages = await messagesFor(queries, run);
  const worded = messages?.filter(({ text }, index) => text !== '' || index === messages.length - 1) ?? null;
  return worded && worded.map(({ role, text }) => (role === 'user' ? { role, text } : { role, text, toolCalls: [] }));
}

/** As {@link conversationOf}, also messages without words: payments, custom content. */
export async function messagesFor(queries: ConversationQueries, run: Run): Promise<ConversationMessage[] | null> {
  const { channelId, agentId, asked: question } = run;
  // The asking agent decides what of the channel the asked one gets to know.
  if (question !== null) {
    const content = [{ type: 'text' as const, text: question.question }];
    return [{ role: 'user', text: ofAgent(question.askedBy.agentName, question.question), content }];
  }
  const ref = parseInteractionId(run.messageId);
  if (ref?.channelId !== channelId) return null;
  let before = await messagesUpTo(queries, run, ref.sequence);
  // The page has the message itself, unless the read model lags behind.
  let asked = before.at(-1)?.sequence === ref.sequence ? (before.pop() ?? null) : null;
  if (asked === null) {
    asked = await answeredMessage(queries, run);
    if (asked === null) return null;
    // The read model may have lacked earlier messages as well.
    before = (await messagesUpTo(queries, run, ref.sequence)).filter(({ sequence }) => sequence < ref.sequence);
  }
  const late = run.lane === null ? [] : await lateAnswers(queries, run, ref.sequence);
  const earlier = withAnswers(before, late).flatMap((one) => messageSeenBy(one, agentId) ?? []);
  return [...earlier, messageOfOther(asked)];
}

/** The complete interactions up to a sequence, oldest first. */
async function messagesUpTo(
  queries: ConversationQueries,
  { organizationId, channelId }: Run,
  sequence: number,
): Promise<StoredInteraction[]> {
  const page = await queries.list(
    organizationId,
    channelId,
    { order: 'desc', beforeSequence: sequence + 1, includeIncomplete: false, includeToolCallUpdates: false },
    { size: MAX_BEFORE + 1, offset: 0, after: null },
    null,
  );
  return (page?.items ?? []).toReversed().map(interactionOf);
}

/** Answers that were given after the message, while its run waited in its lane. */
async function lateAnswers(
  queries: ConversationQueries,
  { organizationId, channelId }: Run,
  afterSequence: number,
): Promise<StoredInteraction[]> {
  const contentRole = 'agent_response' as const;
  const filter = { order: 'asc' as const, afterSequence, contentRole };
  const found = await queries.list(
    organizationId,
    channelId,
    { ...filter, includeIncomplete: false, includeToolCallUpdates: false },
    { size: MAX_BEFORE, offset: 0, after: null },
    null,
  );
  return (found?.items ?? []).map(interactionOf);
}

/** Each answer after the last interaction of its turn; those of other turns are left out. */
function withAnswers(items: readonly StoredInteraction[], answers: readonly StoredInteraction[]): StoredInteraction[] {
  return items.flatMap((one, index) => {
    const isLast = !items.slice(index + 1).some(({ turnId }) => turnId === one.turnId);
    return isLast ? [one, ...answers.filter(({ turnId }) => turnId === one.turnId)] : [one];
  });
}

/** @returns null for what is no message: reasoning, tool calls, notifications */
function messageSeenBy(shown: StoredInteraction, agentId: string): ConversationMessage | null {
  const { contentRole: role, participant, content } = shown;
  if ((role !== 'user_message' && role !== 'agent_response') || content.length === 0) return null;
  const isOwn = role === 'agent_response' && participant.type === 'agent' && participant.agent_id === agentId;
  return isOwn ? { role: 'assistant', text: textOf(shown), content } : messageOfOther(shown);
}

function messageOfOther(shown: StoredInteraction): ConversationMessage {
  const { participant } = shown;
  const [role, content, text] = ['user' as const, shown.content, textOf(shown)];
  if ((participant.type !== 'agent' && participant.type !== 'external_agent') || text === '') {
    return { role, text, content };
  }
  const id = participant.type === 'agent' ? participant.agent_id : null;
  return { role, text: ofAgent(participant.agent_metadata?.['name'] ?? id, text), content };
}

/**
 * The text of another agent may have been written to make this one do something: it is data, as the text of tools is.
 */
function ofAgent(agent: string | null, message: string): string {
  return untrusted({ agent, message });
}

function textOf({ content }: StoredInteraction): string {
  const parts = content.map((item) => {
    if (item.type === 'text') return item.text;
    return item.type === 'media' ? `[File: ${item.meta_data.description}, ${item.meta_data.mime_type}]` : '';
  });
  return parts.filter((part) => part !== '').join('\n');
}
