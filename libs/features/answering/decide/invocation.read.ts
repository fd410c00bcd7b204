import { z } from 'zod';

import { shownFields } from '#libs/kernel/fields.ts';
import { type EntityId, newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityCore } from '#libs/platform/entity/index.ts';
import { foldStream } from '#libs/platform/streams/index.ts';
import { shownTime } from '#libs/platform/http/index.ts';

import {
  INVOCATION,
  type Invocation,
  invocationCodec,
  type InvocationEvent,
  invocationFold,
  type InvocationState,
  invokedReason,
  type Relevance,
  withheldReason,
} from './invocation.ts';

const relevanceFields = shownFields<Relevance>()({
  decided_by: [
    z.enum(['model', 'words']).describe('`words` without a model, and where it gave no answer'),
    ({ by }) => by,
  ],
  model: z.string().nullable().describe('The model that was asked'),
  failure: z.string().nullable().describe('Why the model gave no answer'),
  input_tokens: z.int().nullable(),
  output_tokens: z.int().nullable(),
  cost: z.number().nullable(),
});

const invocationFields = shownFields<Invocation>()({
  message_id: z.string(),
  agent_id: z.string(),
  invoked: [z.boolean(), ({ runId }) => runId !== null],
  reason: z.enum([...invokedReason.options, ...withheldReason.options]),
  run_id: z.string().nullable().describe('The run that answers; null for an agent that was not invoked'),
  at: [shownTime(), ({ createdAt }) => createdAt],
  sequence: z.int().describe('Of the message, in the channel'),
  interaction_id: [z.string().describe('Id of the user turn'), ({ turnId }) => turnId],
  depth: z.int().describe('Hops between agents in the turn before this agent'),
  relevance: [
    z
      .object(relevanceFields.shape)
      .nullable()
      .describe('What judged whether the message concerns the agent; null where the decision did not depend on it'),
    ({ relevance }) => relevance && relevanceFields.resource(relevance),
  ],
});
export const invocationSchema = z.object(invocationFields.shape).meta({ id: 'Invocation' });

type InvocationFacets = {
  readonly channel: string;
  readonly agent: string;
  readonly message: string;
  readonly invoked: boolean;
  /** Of those that were invoked, to count hops. */
  readonly hop: readonly string[];
};

const hopOf = (channelId: EntityId, turnId: string, agentId: EntityId | null): string =>
  [channelId, turnId, agentId].filter((part) => part !== null).join('/');

export const invocationEntity = entity<InvocationState, InvocationEvent, InvocationFacets>({
  category: INVOCATION,
  version: 2,
  codec: invocationCodec,
  fold: invocationFold,
  resource: invocationFields.resource,
  facets: ({ channelId, turnId, agentId, messageId, runId }) => ({
    channel: channelId,
    agent: agentId,
    message: messageId,
    invoked: runId !== null,
    hop: runId === null ? [] : [hopOf(channelId, turnId, null), hopOf(channelId, turnId, agentId)],
  }),
  // For the prompts that wait: without a run, the decision is the end.
  frame: ({ after }) => ({
    type: 'invocation.decided',
    json: JSON.stringify(after && { id: after.id, run_id: after.runId }),
  }),
  isEnded: ({ runId }) => runId === null,
});

/** Newest invocations that hops are counted from. */
const NEWEST = 50;

export class Invocations extends Entities<InvocationState, InvocationEvent, InvocationFacets> {
  constructor(core: EntityCore) {
    super(invocationEntity, core);
  }

  /** The decision as the log has it now; null until it is made. @throws `Fault` `store_unavailable` */
  decision(id: EntityId): Promise<Invocation | null> {
    return foldStream(this.store, invocationEntity.projection, id);
  }

  /** Records a decision, once: a message that is decided again, perhaps otherwise, keeps its first decision. */
  async record(context: CommandContext, event: InvocationEvent): Promise<Invocation> {
    // Another attempt may have decided otherwise: with its ids, the event store would acknowledge what is not in the log.
    const attempt = { ...context, commandId: newId(), isNew: true };
    const result = await this.create(attempt, event.data.id, event);
    if (!result.ok) throw new TypeError('a creation was refused');
    return result.entity;
  }

  /**
   * Hops between agents in the turn that a message of an agent follows from: one more than the deepest invocation of this
   * agent, or of any agent for one that is not registered (null).
   */
  async hopsBefore(
    organizationId: EntityId,
    { channelId, turnId, agentId }: { channelId: EntityId; turnId: string; agentId: EntityId | null },
  ): Promise<number> {
    const page = { size: NEWEST, offset: 0, after: null };
    const { states } = await this.states(organizationId, { hop: hopOf(channelId, turnId, agentId) }, page);
    return Math.max(0, ...states.map(({ depth }) => depth)) + 1;
  }
}
