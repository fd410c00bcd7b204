import { reactor } from '#libs/platform/reactors/index.ts';
import type { DeliveredInvocation } from '#libs/features/agents/index.ts';
import { accept, refuse } from '#libs/kernel/decider.ts';
import type { Decision } from '#libs/kernel/decider.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

import type { RunAgents } from './run.agent.ts';
import { callWebhook } from './webhook.ts';
import type { WebhookParts } from './webhook.ts';
import { escapedTags } from './html.ts';
import { failed } from './run.parts.ts';
import { runEntity } from './run.read.ts';
import { EXTERNAL, hasEnded, isAtAgent } from './run.ts';
import type { Run, RunEvent, RunState } from './run.ts';

/** From the claim of a run to the answer of its agent. */
const ANSWER_TIMEOUT_MS = 600_000;
/** Runs that wait hold no slot; their events are only timers. */
const MAX_WAITING = 2_048;

export interface ExternalParts extends WebhookParts {
  readonly agents: RunAgents;
  /** Port: what external agents are to answer. */
  readonly inboxes: {
    /** Once for each run. */
    deliver(context: CommandContext, agentId: EntityId, invocation: DeliveredInvocation): Promise<void>;
  };
}

/** Hands runs to the teams of external agents, and limits the time that their answers may take. */
export function externalRuns(parts: ExternalParts) {
  return reactor<RunState, RunEvent>({
    name: 'external-runs',
    on: ['RunClaimed.v1'],
    process: runEntity.projection,
    startRevision: (run) => run?.stepRevision ?? null,
    hasEnded: ({ type, data }) => type === 'RunClaimed.v1' && data.model.kind !== EXTERNAL,
    isEnded: (run) => run !== null && (hasEnded(run) || !isAtAgent(run)),
    async handle(_event, { state: run, commandContext, signal }) {
      if (run === null) return [];
      const { id: runId, agentId, channelId, messageId, turnId, depth, asked } = run;
      const askedBy = asked?.askedBy.runId ?? null;
      const invocation = { runId, channelId, messageId, turnId, depth, askedBy };
      await parts.inboxes.deliver(commandContext('inbox'), agentId, invocation);
      const agent = await parts.agents.agent(run.organizationId, agentId);
      if (agent !== null) await callWebhook(agent, invocation, signal, parts);
      return [{ type: 'RunHandedOver.v1', data: {} }];
    },
    giveUp(_run, { reason }) {
      const why = reason === 'deadline' ? 'the agent did not answer in time' : 'the agent could not be reached';
      return [failed(reason === 'deadline' ? 'not_answered' : 'not_reached', why)];
    },
    limits: {
      concurrency: 32,
      maxHeld: MAX_WAITING,
      deadlineMs: ANSWER_TIMEOUT_MS,
      pauseMs: { first: 1_000, longest: 60_000 },
    },
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

const NO_TOKENS = { inputTokens: null, cachedInputTokens: null, outputTokens: null, reasoningTokens: null };

/** The answer becomes the only step of the run. Repeated with the same text, it changes nothing. */
export function decideResponse(run: Run, text: string): Decision<RunEvent, ExternalRejection> {
  const [step] = run.steps;
  if (step?.kind === 'model' && step.text === text && run.claim?.model.kind === EXTERNAL) return accept();
  const obstacle = obstacleOf(run);
  if (obstacle !== null) return refuse(obstacle);
  const said = { text, reasoning: '', toolCalls: [], finish: 'stop', usage: NO_TOKENS, cost: null };
  return accept({ type: 'ModelStepFinished.v1', data: { step: 1, ...said } });
}

const FAILED = 'agent_failed';

/** Users read the message. Repeated, it changes nothing. */
export function decideFailure(run: Run, message: string): Decision<RunEvent, ExternalRejection> {
  const shown = escapedTags(message);
  if (run.failure?.reason === FAILED && run.failure.message === shown) return accept();
  const obstacle = obstacleOf(run);
  return obstacle === null ? accept(failed(FAILED, shown)) : refuse(obstacle);
}
