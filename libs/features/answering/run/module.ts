/** Runs: agents answering messages in channels. One stream, `run-<id>`, for each. */
import type { ExtractionPool } from '#libs/features/documents/index.ts';
import type { InteractionCommands, InteractionQueries, Drafts } from '#libs/features/interactions/index.ts';
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { Openings } from './openings.ts';
import type { RunAgents } from './run.agent.ts';
import { externalRunRoutes } from '../external/run.external.http.ts';
import { endedInvocations, type ExternalParts, externalRuns } from '../external/run.external.ts';
import type { RunParts } from './run.parts.ts';
import { type QuestionParts, runQuestions } from '../tools/run.questions.ts';
import type { ChannelParts } from './run.channel.ts';
import { runLiveCommands, runRoutes } from './run.http.ts';
import { agentRuns, runEndings } from './run.reactor.ts';
import { runLaneEntity, RunLanes } from './run-lane.read.ts';
import { runTurns, type TurnParts } from './run.turns.ts';
import { runEntity, Runs } from './run.read.ts';

interface RunsDeps {
  readonly agents: RunAgents;
  readonly interactions: {
    readonly commands: InteractionCommands;
    readonly queries: InteractionQueries;
    readonly drafts: Drafts;
  };
  readonly reactions: { readonly commands: ChannelParts['receipts'] };
  readonly application: ChannelParts['application'];
  readonly agentTools: RunParts['agentTools'];
  readonly inboxes: ExternalParts['inboxes'];
  readonly channels: Pick<QuestionParts, 'agentsIn'> & Pick<TurnParts, 'runConcurrency'>;
  readonly knowledge: Knowledge;
  readonly extraction: ExtractionPool;
}

export const runsModule = {
  name: 'runs',
  projections: [runEntity.projection, runLaneEntity.projection],
  create(core: Core, deps: RunsDeps) {
    const { agents, agentTools, inboxes, channels, interactions, reactions, application, knowledge, extraction } = deps;
    const { store, log, fetcher, model, modelContextTokens, spans } = core;
    const runs = new Runs(core);
    const turns = { runs, inboxes, lanes: new RunLanes(core), runConcurrency: channels.runConcurrency };
    const parts = {
      agents,
      channel: { ...interactions, receipts: reactions.commands, application },
      conversations: interactions.queries,
      tools: { knowledge, fetcher, extraction },
      runs,
      questions: { runs, agents, agentsIn: channels.agentsIn },
      agentTools,
      openings: new Openings(),
      turns,
      model,
      maxTokens: modelContextTokens,
      store,
      log,
      spans,
    };
    return {
      runs,
      routes: (app: HttpApp) => {
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
  },
} satisfies Module;
