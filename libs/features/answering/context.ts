import type { Agents, AgentTools, Inboxes } from '#libs/features/agents/index.ts';
import type { Channels } from '#libs/features/channels/index.ts';
import type { ExtractionPool } from '#libs/features/documents/index.ts';
import type {
  Drafts,
  InteractionCommands,
  InteractionDirectory,
  InteractionQueries,
} from '#libs/features/interactions/index.ts';
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import type { ReactionCommands } from '#libs/features/reactions/index.ts';
import type { Directory } from '#libs/features/users/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import type { Invocations } from './decide/invocation.read.ts';
import type { RunLanes } from './run/run-lane.read.ts';
import type { Runs } from './run/run.read.ts';

/** What answers are made with. Each function names the members that it uses. */
export interface Answering extends Pick<Core, 'fetcher' | 'log' | 'model' | 'spans' | 'store'> {
  readonly agents: Agents;
  readonly agentTools: AgentTools;
  readonly inboxes: Inboxes;
  readonly channels: Channels;
  readonly interactions: {
    readonly commands: InteractionCommands;
    readonly queries: InteractionQueries;
    readonly drafts: Drafts;
    readonly directory: InteractionDirectory;
  };
  readonly reactions: { readonly commands: ReactionCommands };
  readonly directory: Pick<Directory, 'application'>;
  readonly knowledge: Knowledge;
  readonly extraction: ExtractionPool;
  /** Estimated tokens of a conversation at most. */
  readonly maxTokens: number;
  readonly runs: Runs;
  readonly lanes: RunLanes;
  readonly invocations: Invocations;
}
