import type { Agents, AgentTools, Inboxes } from '#libs/features/agents/index.ts';
import type { Channels } from '#libs/features/channels/index.ts';
import type { ExtractionPool } from '#libs/features/documents/index.ts';

import type { Knowledge } from '#libs/features/knowledge/index.ts';

import type { RealtimeNode } from '#libs/features/realtime/index.ts';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { PromptLimits } from '#libs/platform/config/index.ts';
import type { IdempotencyStore } from '#libs/platform/http/index.ts';
import type { EventLoopPace, FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';
import type { Organizations } from '#libs/features/organizations/index.ts';

import type { Invocations } from './decide/invocation.read.ts';
import type { PromptBudgets } from './prompt/prompt-budget.read.ts';
import type { RunLanes } from './run/run-lane.read.ts';
import type { Runs } from './run/run.read.ts';

/** The tools of answers. Each function names the members that it uses. */
export interface Answering extends Pick<Core, 'fetcher' | 'log' | 'model' | 'spans' | 'store'> {
  readonly agents: Agents;
  readonly agentTools: AgentTools;
  readonly inboxes: Inboxes;
  readonly channels: Channels;
  readonly organizations: Pick<Organizations, 'application'>;
  readonly knowledge: Knowledge;
  readonly extraction: ExtractionPool;
  /** Estimated tokens of a conversation at most. */
  readonly maxTokens: number;
  readonly runs: Runs;
  readonly lanes: RunLanes;
  readonly invocations: Invocations;
}

/** The tools of prompts. */
export interface Prompting
  extends
    Pick<Answering, 'agents' | 'channels' | 'invocations' | 'runs' | 'store'>,
    Pick<Core, 'readModel' | 'redis' | 'topics'> {
  /** Prompts that begin, and looks at runs that are waited for: organizations share them. */
  readonly posting: FairSemaphore;
  readonly looks: FairSemaphore;
  /** Of queued prompts while other organizations send requests. */
  readonly pace: EventLoopPace;
  readonly budgets: PromptBudgets;
  readonly limits: PromptLimits;
  readonly idempotency: IdempotencyStore;
  readonly realtime: {
    readonly node: () => RealtimeNode;
    readonly log: { head(organizationId: EntityId, channelId: EntityId): Promise<ChannelSequence | null> };
  };
}
