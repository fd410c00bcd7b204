/*
 * Event names and shapes are the storage format: written events stay in the log forever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import { accept } from '#libs/kernel/decider.ts';
import type { Decision, Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy } from '#libs/kernel/entity.ts';
import type { EntityState } from '#libs/kernel/entity.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity } from '#libs/platform/entity/index.ts';
import type { EntityCore } from '#libs/platform/entity/index.ts';
import { defineEvents } from '#libs/platform/eventstore/index.ts';
import type { EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `inbox-<agentId>`: what an external agent is to answer, in order. */
const INBOX = 'inbox';

/** Runs that a repeated delivery is recognized by. */
const MAX_RECENT = 200;

export const inboxCodec = defineEvents({
  /** `id`: of the agent. */
  'InboxOpened.v1': z.object({ id: z.string() }),
  'InvocationDelivered.v1': z.object({
    runId: z.string(),
    channelId: z.string(),
    messageId: z.string(),
    turnId: z.string(),
    depth: z.int().min(0),
    /** The run that waits for the answer; null for the answer to a message. */
    askedBy: z.string().nullable(),
  }),
});

type InboxEvent = EventOf<typeof inboxCodec>;
export type DeliveredInvocation = Extract<InboxEvent, { type: 'InvocationDelivered.v1' }>['data'];

type Inbox = EntityState & { readonly recent: readonly EntityId[] };
type InboxState = Inbox | null;

export const inboxFold: Fold<InboxState, InboxEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'InboxOpened.v1') return { ...event.data, ...createdBy(event), recent: [] };
    if (state === null) return state;
    const recent = [event.data.runId, ...state.recent].slice(0, MAX_RECENT);
    return { ...state, ...changedBy(event), recent };
  },
};

/** What an external agent receives, as frame and over its webhook. */
export const requestedInvocation = z
  .object({
    run_id: z.string(),
    agent_id: z.string(),
    channel_id: z.string(),
    message_id: z.string().describe('Id of the interaction that is answered'),
    interaction_id: z.string().describe('Id of the user turn'),
    depth: z.int().describe('Hops between agents in this turn before this run'),
    asked_by: z
      .string()
      .nullable()
      .describe('Id of the run that waits for the answer; null for the answer to a message'),
  })
  .meta({ id: 'RequestedInvocation' });

export function invocationFor(agentId: EntityId, data: DeliveredInvocation): z.infer<typeof requestedInvocation> {
  const { runId, channelId, messageId, turnId, depth, askedBy } = data;
  return {
    run_id: runId,
    agent_id: agentId,
    channel_id: channelId,
    message_id: messageId,
    interaction_id: turnId,
    depth,
    asked_by: askedBy,
  };
}

export const inboxEntity = entity<InboxState, InboxEvent, Record<string, never>>({
  category: INBOX,
  version: 1,
  codec: inboxCodec,
  fold: inboxFold,
  resource: ({ id }) => ({ agent_id: id }),
  facets: () => ({}),
  frame: ({ id, event }) =>
    event.type === 'InvocationDelivered.v1'
      ? { type: 'invocation.requested', json: JSON.stringify(invocationFor(id, event.data)) }
      : { type: 'inbox.opened', json: JSON.stringify({ agent_id: id }) },
  // An inbox grows for ever, and its reader comes back often.
  hasPlainFrames: true,
});

export class Inboxes extends Entities<InboxState, InboxEvent, Record<string, never>> {
  constructor(core: EntityCore) {
    super(inboxEntity, core);
  }

  /** Opens the inbox of an agent, once. */
  async open(context: CommandContext, agentId: EntityId): Promise<void> {
    await this.create(context, agentId, { type: 'InboxOpened.v1', data: { id: agentId } });
  }

  /** Adds an invocation, once for each run. */
  async deliver(context: CommandContext, agentId: EntityId, invocation: DeliveredInvocation): Promise<void> {
    await this.run(context, agentId, (inbox): Decision<InboxEvent, never> => {
      if (inbox?.recent.includes(invocation.runId)) return accept();
      const opened = { type: 'InboxOpened.v1', data: { id: agentId } } as const;
      const delivered = { type: 'InvocationDelivered.v1', data: invocation } as const;
      return inbox === null ? accept<InboxEvent>(opened, delivered) : accept<InboxEvent>(delivered);
    });
  }
}
