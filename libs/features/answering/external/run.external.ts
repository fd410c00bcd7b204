import { reactor } from '#libs/platform/reactors/index.ts';
import { endOf, inboxCodec, type Inboxes, invocationFor } from '#libs/features/agents/index.ts';
import { accept, type Decision, refuse } from '#libs/kernel/decider.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

import type { CommandContext } from '#libs/platform/commands/index.ts';
import { NO_USAGE } from '#libs/platform/model/index.ts';

import type { Answering } from '../context.ts';
import { callWebhook } from './webhook.ts';
import { messageOf, type RunMessage } from '../run/run.conversation.ts';
import { runEntity } from '../run/run.read.ts';
import {
  type CalledTool,
  EXTERNAL,
  failed,
  hasEnded,
  isAtAgent,
  type Run,
  type RunEvent,
  type RunState,
} from '../run/run.ts';

/** From the claim of a run to the answer of its agent. */
const ANSWER_TIMEOUT_MS = 600_000;
/** Between attempts to reach a webhook. */
const PAUSES = { first: 1_000, longest: 60_000 };
/** Reason of failures that agents report. */
const FAILED = 'agent_failed';

/** Hands runs to the teams of external agents, and limits the time that their answers may take. */
export function externalRuns(answering: Pick<Answering, 'agents' | 'channels' | 'fetcher' | 'inboxes' | 'runs'>) {
  return reactor<RunState, RunEvent>({
    name: 'external-runs',
    on: ['RunClaimed.v1'],
    process: runEntity.projection,
    startRevision: (run) => run?.stepRevision ?? null,
    isIrrelevant: ({ data }) => (data as { model?: { kind?: unknown } } | null)?.model?.kind !== EXTERNAL,
    isEnded: (run) => run !== null && (hasEnded(run) || !isAtAgent(run)),
    async handle(_event, { state: run, commandContext, signal }) {
      if (run === null) return [];
      const { id: runId, organizationId, agentId, channelId, messageId, turnId, spanId, depth, asked } = run;
      const agent = await answering.agents.agent(organizationId, agentId);
      if (agent === null || !agent.isActive) return [failed('agent_gone', 'the agent does not exist any longer')];
      const askedBy = asked?.askedBy.runId ?? null;
      const message = await messageOf(answering.channels.queries, run);
      const invocation = {
        runId,
        channelId,
        messageId,
        turnId,
        depth,
        askedBy,
        spanId,
        content: shortContent(message),
      };
      const isDelivered = await answering.inboxes.deliver(commandContext('inbox'), agentId, invocation);
      if (!isDelivered) return [failed('agent_busy', 'too many messages wait for this agent')];
      // Its end may have come before the delivery, which it then did not find.
      const now = await answering.runs.inLog(organizationId, runId);
      if (now !== null && hasEnded(now)) {
        await endDelivery(now, commandContext('end'), answering.inboxes);
        return [];
      }
      const data = invocationFor(agentId, invocation);
      const request = { id: runId, type: 'invocation.requested', data, context: commandContext('webhook gone') };
      await callWebhook(agent, request, signal, answering);
      return [{ type: 'RunHandedOver.v1', data: {} }];
    },
    giveUp(_run, { reason }) {
      const why = reason === 'deadline' ? 'the agent did not answer in time' : 'the agent could not be reached';
      return [failed(reason === 'deadline' ? 'not_answered' : 'not_reached', why)];
    },
    limits: {
      concurrency: 256,
      perOrganization: 64,
      deadlineMs: ANSWER_TIMEOUT_MS,
      pauseMs: PAUSES,
    },
  });
}

/** Content beyond this is left to `/conversation`: the inbox keeps what it has delivered for ever. */
const MAX_CONTENT_CHARS = 16_384;

function shortContent(message: RunMessage | null): RunMessage['content'] | null {
  if (message === null || JSON.stringify(message.content).length > MAX_CONTENT_CHARS) return null;
  return message.content;
}

/** Records in the inbox of an external agent that a run of it has ended. */
export async function endDelivery(
  { id: runId, agentId, phase, failure, claim }: Run,
  context: CommandContext,
  inboxes: Inboxes,
): Promise<void> {
  if (claim?.model.kind !== EXTERNAL || phase === 'queued' || phase === 'running') return;
  await inboxes.end(context, { runId, agentId, status: phase, reason: failure?.reason ?? null });
}

/** Ends that the agent has caused, or whose webhook was not reached before: they are in its inbox alone. */
const SILENT: ReadonlySet<string | null> = new Set([FAILED, 'not_reached']);

/** Tells the webhooks of external agents which runs they need not answer any longer. */
export function endedInvocations(answering: Pick<Answering, 'agents' | 'fetcher'>) {
  return reactor<null, never, EventOf<typeof inboxCodec>>({
    name: 'ended-invocations',
    on: ['InvocationEnded.v1'],
    triggers: inboxCodec,
    // Nothing is recorded of what was sent: a webhook gets it at least once.
    process: {
      category: 'ended-invocations',
      codec: defineEvents({}),
      fold: { initialState: null, evolve: () => null },
    },
    processOf: ({ data }) => ('runId' in data ? data.runId : data.id),
    isEnded: () => false,
    hasEnded: ({ type, data }) =>
      type !== 'InvocationEnded.v1' || data.status === 'completed' || SILENT.has(data.reason),
    async handle({ type, data }, { organizationId, commandContext, signal }) {
      if (type !== 'InvocationEnded.v1') return [];
      const agent = await answering.agents.agent(organizationId, data.agentId);
      if (agent === null || !agent.isActive) return [];
      const message = { id: `${data.runId}.ended`, type: 'invocation.ended', data: endOf(data) };
      await callWebhook(agent, { ...message, context: commandContext('webhook gone') }, signal, answering);
      return [];
    },
    giveUp: () => [],
    limits: { concurrency: 256, perOrganization: 64, pauseMs: PAUSES },
  });
}

export type ExternalRejection = { readonly reason: 'not_external' | 'run_ended' | 'run_answered' | 'not_claimed' };

/** Whether the team of the agent may write the answer now. */
export function obstacleOf(run: Run): ExternalRejection | null {
  if (run.claim === null) return { reason: hasEnded(run) ? 'run_ended' : 'not_claimed' };
  if (run.claim.model.kind !== EXTERNAL) return { reason: 'not_external' };
  if (run.steps.length > 0) return { reason: 'run_answered' };
  return hasEnded(run) ? { reason: 'run_ended' } : null;
}

/** Calls of a run without a result at the same time. */
export const MAX_OPEN_CALLS = 100;
/** Calls of a run in all: the run knows each of them again. */
export const MAX_CALLS = 500;
export type CallRejection = ExternalRejection | { readonly reason: 'too_many_calls' };

/** Precedes the post of the call, so that the end of the run ends the call. */
export function decideCall(run: Run, { id, name }: CalledTool): Decision<RunEvent, CallRejection> {
  const obstacle = obstacleOf(run);
  if (obstacle !== null) return refuse(obstacle);
  const { openCalls, endedCalls } = run;
  if (openCalls.some((one) => one.id === id) || endedCalls.includes(id)) return accept();
  const isFull = openCalls.length >= MAX_OPEN_CALLS || openCalls.length + endedCalls.length >= MAX_CALLS;
  if (isFull) return refuse({ reason: 'too_many_calls' });
  return accept({ type: 'ToolCallPosted.v1', data: { callId: id, name } });
}

/** Follows the post of the result, or the post of a call that the channel has refused. */
export function decideCallEnd(
  run: Run,
  callId: string,
  type: 'ToolResultPosted.v1' | 'ToolCallRefused.v1',
): Decision<RunEvent, never> {
  const isOpen = !hasEnded(run) && run.openCalls.some(({ id }) => id === callId);
  return isOpen ? accept({ type, data: { callId } }) : accept();
}

/** The answer becomes the only step of the run. Repeated with the same text, it changes nothing. */
export function decideResponse(run: Run, text: string): Decision<RunEvent, ExternalRejection> {
  const [step] = run.steps;
  if (step?.kind === 'model' && step.text === text && run.claim?.model.kind === EXTERNAL) return accept();
  const obstacle = obstacleOf(run);
  if (obstacle !== null) return refuse(obstacle);
  const said = { text, reasoning: '', toolCalls: [], finish: 'stop', usage: { ...NO_USAGE }, cost: null };
  return accept({ type: 'ModelStepFinished.v1', data: { step: 1, ...said } });
}

/** Users read the message. Repeated, it changes nothing. */
export function decideFailure(run: Run, message: string): Decision<RunEvent, ExternalRejection> {
  if (run.failure?.reason === FAILED && run.failure.message === message) return accept();
  const obstacle = obstacleOf(run);
  return obstacle === null ? accept(failed(FAILED, message)) : refuse(obstacle);
}
