/*
 * Event names and shapes are the storage format: written events stay in the log forever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import type { Fold } from '#libs/kernel/decider.ts';
import { createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { derivedId, ENTITY_ID, type EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf, upcast } from '#libs/platform/eventstore/index.ts';
import { type InteractionPosted, parseInteractionId } from '#libs/features/channels/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';

/** Category of the streams, `invocation-<id>`: one for each message and agent, with one event. */
export const INVOCATION = 'invocation';

/** Id of the decision on a message and an agent, and of the run that answers. Part of the storage format. */
export function invocationId(channelId: EntityId, sequence: number, agentId: EntityId): EntityId {
  return derivedId(channelId, `invocation ${sequence} ${agentId}`);
}

export const invokedReason = z.enum(['mentioned', 'all_messages', 'personal_agent', 'relevant']);
const withheldReasonV1 = z.enum([
  'own_message',
  'inactive',
  'withheld',
  'not_mentioned',
  'not_personal',
  'irrelevant',
  'depth_cap',
]);
const withheldReasonV2 = z.enum([...withheldReasonV1.options, 'not_participant', 'channel_archived']);
/**
 * `not_participant`, `channel_archived`: of an agent that the message mentions, when it was decided. `failed`: all attempts
 * to decide have failed.
 */
export const withheldReason = z.enum([...withheldReasonV2.options, 'failed']);

const tokens = z.int().nullable();
/** The judge of whether the message is about what the agent knows. */
const relevance = z.object({
  /** `words`: without a model, and where the model gave no answer. */
  by: z.enum(['model', 'words']),
  /** The model that was asked; null for none. */
  model: z.string().nullable(),
  /** Why the model gave no answer; null if it gave one or was not asked. */
  failure: z.string().nullable(),
  /** Of the question and the answer; null if the endpoint did not report them. */
  inputTokens: tokens,
  outputTokens: tokens,
  /** In the currency of the configured prices; null without. */
  cost: z.number().nullable(),
});
export type Relevance = z.infer<typeof relevance>;

export const BY_WORDS: Relevance = {
  by: 'words',
  model: null,
  failure: null,
  inputTokens: null,
  outputTokens: null,
  cost: null,
};

const about = {
  id: z.string(),
  channelId: z.string(),
  /** Of the message, in the channel. */
  sequence: z.int().positive(),
  messageId: z.string(),
  turnId: z.string(),
  agentId: z.string(),
  /** Hops between agents in the turn before this agent: 0 for a message of a user. */
  depth: z.int().min(0),
};

/** Frozen. */
const invokedV1 = z.object({ ...about, reason: invokedReason, runId: z.string() });
const withheldV1 = z.object({ ...about, reason: withheldReasonV1 });

/** `relevance`: null where the decision did not depend on it. */
const judged = { relevance: relevance.nullable() };

/** Frozen. */
const withheldV2 = z.object({ ...about, reason: withheldReasonV2, ...judged });

export const invocationCodec = defineEvents(
  {
    'AgentInvoked.v2': z.object({ ...about, reason: invokedReason, runId: z.string(), ...judged }),
    'AgentWithheld.v3': z.object({ ...about, reason: withheldReason, ...judged }),
  },
  {
    upcasters: {
      'AgentInvoked.v1': upcast(invokedV1, (data) => {
        return { type: 'AgentInvoked.v2', data: { ...data, relevance: data.reason === 'relevant' ? BY_WORDS : null } };
      }),
      'AgentWithheld.v1': upcast(withheldV1, (data) => {
        const byWords = data.reason === 'irrelevant' ? BY_WORDS : null;
        return { type: 'AgentWithheld.v2', data: { ...data, relevance: byWords } };
      }),
      'AgentWithheld.v2': upcast(withheldV2, (data) => ({ type: 'AgentWithheld.v3', data })),
    },
  },
);

export type InvocationEvent = EventOf<typeof invocationCodec>;
export type Reason = z.infer<typeof invokedReason> | z.infer<typeof withheldReason>;

/** Whether an agent was asked to answer a message, and why. */
export type Invocation = Omit<Extract<InvocationEvent, { type: 'AgentInvoked.v2' }>['data'], 'reason' | 'runId'> &
  EntityState & { readonly reason: Reason; readonly runId: EntityId | null };

/** `null` until it is decided. */
export type InvocationState = Invocation | null;

export const invocationFold: Fold<InvocationState, InvocationEvent> = {
  initialState: null,
  evolve(state, event) {
    if (state !== null) return state;
    return { runId: null, ...event.data, ...createdBy(event) };
  },
};

/** Hops between agents in one turn; the message of the last one invokes no further agent. */
export const MAX_HOPS = 8;

/** A message of a channel, as far as decisions depend on it. */
export interface Message {
  readonly sender: { readonly type: string; readonly agentId: EntityId | null };
  /** Agents that the message mentions, and those that it must not invoke; by id, never by its text. */
  readonly mentions: ReadonlySet<EntityId>;
  readonly withheld: ReadonlySet<EntityId>;
  /** See `depth` of the events. */
  readonly depth: number;
}

const AGENTS: ReadonlySet<string> = new Set(['agent', 'external_agent']);

/** Agents are invoked by the mentions of agents, and by messages of everyone else as the channel has it. */
export function isFromAgent({ sender }: Pick<Message, 'sender'>): boolean {
  return AGENTS.has(sender.type);
}

export interface InvocableAgent {
  readonly id: EntityId;
  readonly isActive: boolean;
  readonly isPersonal: boolean;
}

export type Behavior = 'at_mentions_only' | 'all_messages' | 'all_messages_personal_agent' | 'intelligent' | null;

type Verdict =
  | { readonly invoked: true; readonly reason: z.infer<typeof invokedReason> }
  | { readonly invoked: false; readonly reason: z.infer<typeof withheldReason> };

/** @param isRelevant whether the message is about what the agent knows; decides only where {@link asksRelevance} */
export function decideInvocation(
  message: Message,
  agent: InvocableAgent,
  { behavior, isRelevant }: { readonly behavior: Behavior; readonly isRelevant: boolean },
): Verdict {
  const obstacle = obstacleOf(message, agent);
  if (obstacle !== null) return { invoked: false, reason: obstacle };
  const verdict = verdictOf(message, agent, behavior, isRelevant);
  return verdict.invoked && message.depth >= MAX_HOPS ? { invoked: false, reason: 'depth_cap' } : verdict;
}

/** Whether the decision depends on the relevance of the message, which costs a search. */
export function asksRelevance(message: Message, agent: InvocableAgent, behavior: Behavior): boolean {
  if (behavior !== 'intelligent' || isFromAgent(message) || message.mentions.has(agent.id)) return false;
  return obstacleOf(message, agent) === null;
}

function obstacleOf({ sender, withheld }: Message, { id, isActive }: InvocableAgent) {
  if (sender.agentId === id) return 'own_message';
  if (withheld.has(id)) return 'withheld';
  return isActive ? null : 'inactive';
}

function verdictOf(message: Message, agent: InvocableAgent, behavior: Behavior, isRelevant: boolean): Verdict {
  if (message.mentions.has(agent.id)) return { invoked: true, reason: 'mentioned' };
  if (isFromAgent(message)) return { invoked: false, reason: 'not_mentioned' };
  switch (behavior) {
    case 'at_mentions_only':
    case null:
      return { invoked: false, reason: 'not_mentioned' };
    case 'all_messages':
      return { invoked: true, reason: 'all_messages' };
    case 'all_messages_personal_agent':
      return agent.isPersonal
        ? { invoked: true, reason: 'personal_agent' }
        : { invoked: false, reason: 'not_personal' };
    case 'intelligent':
      return isRelevant ? { invoked: true, reason: 'relevant' } : { invoked: false, reason: 'irrelevant' };
  }
}

/** A message without its depth, which depends on other invocations. */
export interface PostedMessage extends Omit<Message, 'depth'> {
  readonly messageId: EntityId;
  readonly channelId: EntityId;
  readonly sequence: ChannelSequence;
  readonly turnId: string;
  readonly spanId: string;
  /** Of the run that wrote the message, as its metadata says. */
  readonly runId: EntityId | null;
  readonly content: InteractionPosted['content'];
  readonly invocationConfig: InteractionPosted['invocationConfig'];
}

const MESSAGES: ReadonlySet<string> = new Set(['user_message', 'agent_response']);

/** Other interactions, such as tool calls, are no messages. */
export function isMessage(contentRole: string): boolean {
  return MESSAGES.has(contentRole);
}

const mentions = z.array(z.object({ type: z.string(), id: z.string() })).nullish();
/** The form for which requests were checked when they were posted. */
const config = z.object({ mentions, withheld_mentions: mentions });

/** Null for interactions that are no messages, and for those without a valid id. */
export function messageOf(messageId: EntityId, posted: InteractionPosted): PostedMessage | null {
  const ref = parseInteractionId(messageId);
  if (ref === null || !isMessage(posted.contentRole)) return null;
  const { participant, content, invocationConfig, spanId, turnId, metadata } = posted;
  const given = config.parse(invocationConfig ?? {});
  const agentId = participant['agent_id'];
  return {
    ...ref,
    messageId,
    turnId: turnId ?? spanId,
    spanId,
    runId: runIdIn(metadata),
    content,
    invocationConfig,
    sender: { type: participant.type, agentId: typeof agentId === 'string' ? agentId : null },
    mentions: agentsIn(given.mentions),
    withheld: agentsIn(given.withheld_mentions),
  };
}

function runIdIn(metadata: InteractionPosted['metadata']): EntityId | null {
  const runId = metadata?.['run_id'];
  return typeof runId === 'string' && ENTITY_ID.test(runId) ? runId : null;
}

function agentsIn(list: z.infer<typeof mentions>): ReadonlySet<EntityId> {
  return new Set((list ?? []).flatMap(({ type, id }) => (type === 'agent' ? [id] : [])));
}

export function textOf({ content }: Pick<PostedMessage, 'content'>): string {
  return content
    .flatMap(({ type, ['text']: text }) => (type === 'text' && typeof text === 'string' ? [text] : []))
    .join('\n');
}
