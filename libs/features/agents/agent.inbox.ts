/*
 * Event names and shapes are the storage format: written events stay in the log forever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import { accept, type Decision, type Fold, refuse } from '#libs/kernel/decider.ts';
import type { Timestamp } from '#libs/kernel/clock.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityCore } from '#libs/platform/entity/index.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `inbox-<agentId>`: what an external agent is to answer, in order. */
const INBOX = 'inbox';

/** Runs that a repeated delivery is recognized by. */
const MAX_RECENT = 200;
/** Runs of one agent that wait for its answer at the same time, so that a silent one does not hold up others. */
export const MAX_UNANSWERED = 100;
/** A run has ended by then, also if its end was never recorded here. */
const MAX_OPEN_MS = 900_000;

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
    /** Span of the message. Older events lack it. */
    spanId: z.string().optional(),
    /** Content of the message; null if it is long, or the message does not exist. */
    content: z.array(z.looseObject({ type: z.string() })).nullish(),
  }),
  /** A run that was delivered has ended: the agent need not answer it any longer. `reason`: of a failure. */
  'InvocationEnded.v1': z.object({
    runId: z.string(),
    agentId: z.string(),
    status: z.enum(['completed', 'failed', 'cancelled']),
    reason: z.string().nullable(),
  }),
});

export type InboxEvent = EventOf<typeof inboxCodec>;
export type DeliveredInvocation = Extract<InboxEvent, { type: 'InvocationDelivered.v1' }>['data'];
type EndedInvocation = Extract<InboxEvent, { type: 'InvocationEnded.v1' }>['data'];

type Inbox = EntityState & {
  /** Newest first. */
  readonly recent: readonly EntityId[];
  /** Invocations whose end is not recorded, with the times of their delivery. Newest first. */
  readonly open: readonly { readonly runId: EntityId; readonly at: Timestamp }[];
};
type InboxState = Inbox | null;

export const inboxFold: Fold<InboxState, InboxEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'InboxOpened.v1') return { ...event.data, ...createdBy(event), recent: [], open: [] };
    if (state === null) return state;
    const changed = { ...state, ...changedBy(event) };
    const { runId } = event.data;
    if (event.type === 'InvocationEnded.v1') {
      return { ...changed, open: state.open.filter((one) => one.runId !== runId) };
    }
    const recent = [runId, ...state.recent].slice(0, MAX_RECENT);
    const open = [{ runId, at: event.metadata.at }, ...state.open].slice(0, MAX_RECENT);
    return { ...changed, recent, open };
  },
};

/** Adds an invocation, once for each run. Refuses if the agent has too many to answer. @param at the time now */
export function decideDeliver(
  inbox: InboxState,
  { agentId, invocation, at }: { readonly agentId: EntityId; readonly invocation: DeliveredInvocation; at: Timestamp },
): Decision<InboxEvent, { readonly reason: 'busy' }> {
  const { runId } = invocation;
  if (inbox?.recent.includes(runId) || inbox?.open.some((one) => one.runId === runId)) return accept();
  const since = Date.parse(at) - MAX_OPEN_MS;
  const unanswered = inbox?.open.filter((one) => Date.parse(one.at) > since) ?? [];
  if (unanswered.length >= MAX_UNANSWERED) return refuse({ reason: 'busy' });
  const opened = { type: 'InboxOpened.v1', data: { id: agentId } } as const;
  const delivered = { type: 'InvocationDelivered.v1', data: invocation } as const;
  return inbox === null ? accept<InboxEvent>(opened, delivered) : accept<InboxEvent>(delivered);
}

/** Once for each run; nothing for one that was not delivered. */
export function decideEnd(inbox: InboxState, ended: EndedInvocation): Decision<InboxEvent, never> {
  const isOpen = inbox?.open.some(({ runId }) => runId === ended.runId) === true;
  return isOpen ? accept({ type: 'InvocationEnded.v1', data: ended }) : accept();
}

/** An invocation as an external agent receives it, as frame and over its webhook. */
const requestedInvocation = z
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
    span_id: z.string().nullable().describe('Span of the message; null in invocations of before'),
    content: z
      .array(z.looseObject({ type: z.string() }))
      .nullable()
      .describe('Content items of the message, or the question of the agent that asks; null if it is long'),
  })
  .meta({ id: 'RequestedInvocation' });

export function invocationFor(agentId: EntityId, data: DeliveredInvocation): z.infer<typeof requestedInvocation> {
  const { runId, channelId, messageId, turnId, depth, askedBy, spanId = null, content = null } = data;
  return {
    run_id: runId,
    agent_id: agentId,
    channel_id: channelId,
    message_id: messageId,
    interaction_id: turnId,
    depth,
    asked_by: askedBy,
    span_id: spanId,
    content,
  };
}

/** Follows `invocation.requested` once the run has ended. */
const endedInvocation = z
  .object({
    run_id: z.string(),
    agent_id: z.string(),
    status: z.enum(['completed', 'failed', 'cancelled']),
    reason: z.string().nullable().describe('Of a run that failed'),
  })
  .meta({ id: 'EndedInvocation' });

export function endOf({ runId, agentId, status, reason }: EndedInvocation): z.infer<typeof endedInvocation> {
  return { run_id: runId, agent_id: agentId, status, reason };
}

function frameOf(agentId: EntityId, { type, data }: InboxEvent): { readonly type: string; readonly data: object } {
  switch (type) {
    case 'InboxOpened.v1':
      return { type: 'inbox.opened', data: { agent_id: agentId } };
    case 'InvocationDelivered.v1':
      return { type: 'invocation.requested', data: invocationFor(agentId, data) };
    case 'InvocationEnded.v1':
      return { type: 'invocation.ended', data: endOf(data) };
  }
}

export const inboxEntity = entity<InboxState, InboxEvent, Record<string, never>>({
  category: INBOX,
  version: 2,
  codec: inboxCodec,
  fold: inboxFold,
  resource: ({ id }) => ({ agent_id: id }),
  facets: () => ({}),
  frame({ id, event }) {
    const { type, data } = frameOf(id, event);
    return { type, json: JSON.stringify(data) };
  },
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

  /** Adds an invocation, once for each run. @returns false if the agent has too many to answer */
  async deliver(context: CommandContext, agentId: EntityId, invocation: DeliveredInvocation): Promise<boolean> {
    const { at } = context;
    return (await this.run(context, agentId, (inbox) => decideDeliver(inbox, { agentId, invocation, at }))).ok;
  }

  /** Tells the agent that a run has ended, once, if it was delivered. */
  async end(context: CommandContext, ended: EndedInvocation): Promise<void> {
    await this.current(context, ended.agentId, (inbox) => decideEnd(inbox, ended));
  }
}
