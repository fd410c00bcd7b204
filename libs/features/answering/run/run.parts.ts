import type { AgentTools } from '#libs/features/agents/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import type { LifecycleLog } from '#libs/platform/lifecycle/index.ts';
import type { Model } from '#libs/platform/model/index.ts';
import type { Process } from '#libs/platform/reactors/index.ts';

import type { Spans } from '#libs/platform/telemetry/index.ts';

import type { Openings } from './openings.ts';
import type { RunAgent, RunAgents } from './run.agent.ts';
import type { ChannelParts, RunInChannel } from './run.channel.ts';
import type { ConversationQueries } from './run.conversation.ts';
import type { QuestionParts } from '../tools/run.questions.ts';
import type { ToolParts } from '../tools/run.tools.ts';
import type { TurnParts } from './run.turns.ts';
import type { Run, RunEvent, RunState } from './run.ts';

/** What a process of runs works with. */
export interface RunParts {
  readonly agents: RunAgents;
  readonly channel: ChannelParts;
  readonly conversations: ConversationQueries;
  readonly tools: ToolParts;
  readonly questions: QuestionParts;
  readonly agentTools: Pick<AgentTools, 'of' | 'call'>;
  readonly openings: Openings;
  readonly turns: TurnParts;
  /** Null: answers are extractive. */
  readonly model: Model | null;
  /** Estimated tokens of a conversation at most. */
  readonly maxTokens: number;
  readonly store: Pick<EventStore, 'readStream'>;
  readonly log: Pick<LifecycleLog, 'warn'>;
  /** Null: traces are not exported. */
  readonly spans: Spans | null;
}

/** One step of a run in one worker. */
export interface StepOfRun {
  readonly run: Run;
  readonly agent: RunAgent;
  readonly process: Process<RunState, RunEvent>;
  readonly channel: RunInChannel;
}

type Failed = Extract<RunEvent, { type: 'RunFailed.v1' }>;

export function failed(
  reason: string,
  message: string,
  more: Pick<Failed['data'], 'detail' | 'usage' | 'cost'> = {},
): RunEvent {
  return { type: 'RunFailed.v1', data: { reason, message, ...more } };
}
