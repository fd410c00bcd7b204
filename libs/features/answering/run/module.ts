/** Runs: agents answering messages in channels. One stream, `run-<id>`, for each. */
import type { Channels } from '#libs/features/channels/index.ts';
import type { ExtractionPool } from '#libs/features/documents/index.ts';
import type { InteractionCommands, InteractionQueries, Drafts } from '#libs/features/interactions/index.ts';
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import type { Directory } from '#libs/features/users/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { Openings } from './openings.ts';
import type { RunAgents } from './run.agent.ts';
import { externalRunRoutes } from '../external/run.external.http.ts';
import { endedInvocations, type ExternalParts, externalRuns } from '../external/run.external.ts';
import type { RunParts } from './run.parts.ts';
import { runQuestions } from '../tools/run.questions.ts';
import type { ChannelParts } from './run.channel.ts';
import { runLiveCommands, runRoutes } from './run.http.ts';
import { agentRuns, runEndings } from './run.reactor.ts';
import { runLaneEntity, RunLanes } from './run-lane.read.ts';
import { runTurns, type TurnParts } from './run.turns.ts';
import { runEntity, Runs } from './run.read.ts';

interface RunsDeps {
  readonly agents: RunAgents;
  readonly agentTools: RunParts['agentTools'];
  readonly inboxes: ExternalParts['inboxes'];
  readonly channels: Pick<Channels, 'agentsIn' | 'runConcurrency'>;
  readonly interactions: {
    readonly commands: InteractionCommands;
    readonly queries: InteractionQueries;
    readonly drafts: Drafts;
  };
  readonly reactions: { readonly commands: ChannelParts['receipts'] };
  readonly directory: Pick<Directory, 'application'>;
  readonly knowledge: Knowledge;
  readonly extraction: ExtractionPool;
  /** Estimated tokens of a conversation at most. */
  readonly maxTokens: number;
}

export const runsModule = {
  name: 'runs',
  projections: [runEntity.projection, runLaneEntity.projection],
} satisfies Module;

export function createRuns(core: Core, deps: RunsDeps) {
  const { agents, agentTools, inboxes, channels, interactions, reactions, directory, maxTokens } = deps;
  const { store, log, fetcher, model, spans } = core;
  const runs = new Runs(core);
  const turns: TurnParts = {
    runs,
    inboxes,
    lanes: new RunLanes(core),
    runConcurrency: (context, channelId) => channels.runConcurrency(context, channelId),
  };
  const application = (organizationId: EntityId) => directory.application(organizationId);
  const parts = {
    agents,
    channel: { ...interactions, receipts: reactions.commands, application },
    conversations: interactions.queries,
    tools: { knowledge: deps.knowledge, fetcher, extraction: deps.extraction },
    runs,
    questions: { runs, agents, agentsIn: (context: CommandContext, id: EntityId) => channels.agentsIn(context, id) },
    agentTools,
    openings: new Openings(),
    turns,
    model,
    maxTokens,
    store,
    log,
    spans,
  };
  return {
    runs,
    routes(app: HttpApp) {
      runRoutes(app, runs);
      externalRunRoutes(app, parts);
    },
    liveCommands: runLiveCommands(runs),
    reactors: [
      agentRuns(parts),
      runEndings(parts),
      runQuestions({ runs }),
      externalRuns({ runs, inboxes, agents, fetcher }),
      endedInvocations({ agents, fetcher }),
      runTurns(turns),
    ],
  };
}
