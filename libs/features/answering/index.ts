/**
 * Answers of agents in channels: which agents answer a message (`decide`), their runs (`run`, `tools`, `external`), and
 * prompts (`prompt`). The streams: `invocation-<id>` and `run-<id>` for each message and agent, `runlane-<id>`,
 * `promptbudget-<id>`.
 */
import { type HttpApp, RedisIdempotencyStore } from '#libs/platform/http/index.ts';
import { EventLoopPace, FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import type { Answering, Prompting } from './context.ts';
import { invocationRoutes } from './decide/invocation.http.ts';
import { invocationReactor } from './decide/invocation.reactor.ts';
import { invocationEntity, Invocations } from './decide/invocation.read.ts';
import { RelevanceJudge } from './decide/relevance-judge.ts';
import { externalRunRoutes } from './external/run.external.http.ts';
import { runPostRoutes } from './external/run.posts.http.ts';
import { endedInvocations, externalRuns } from './external/run.external.ts';
import { promptBudgetEntity, PromptBudgets } from './prompt/prompt-budget.read.ts';
import { promptRoute } from './prompt/prompt.http.ts';
import { publicPromptRoute } from './prompt/public-prompt.http.ts';
import { streamPromptRoute } from './prompt/stream-prompt.http.ts';
import { runEnds } from './run/run-ends.ts';
import { runLaneEntity, RunLanes } from './run/run-lane.read.ts';
import { runLiveCommands, runRoutes } from './run/run.http.ts';
import { agentRuns } from './run/run.reactor.ts';
import { runEntity, Runs } from './run/run.read.ts';
import { runQuestions } from './tools/run.questions.ts';

export const answeringModule = {
  name: 'answering',
  projections: [
    runEntity.projection,
    runLaneEntity.projection,
    invocationEntity.projection,
    promptBudgetEntity.projection,
  ],
} satisfies Module;

interface AnsweringDeps extends Omit<Answering, keyof Core | 'runs' | 'lanes' | 'invocations'> {
  /** Of a question to the model, whether a message concerns an agent. 0: words decide. */
  readonly relevance: { readonly timeoutMs: number };
}

/** Decisions on messages, and the runs that follow from them. */
export function createAnswering(core: Core, { relevance, ...deps }: AnsweringDeps) {
  const own = { runs: new Runs(core), lanes: new RunLanes(core), invocations: new Invocations(core) };
  const { fetcher, log, model, spans, store } = core;
  const answering: Answering = { fetcher, log, model, spans, store, ...deps, ...own };
  const judge = new RelevanceJudge({ knowledge: deps.knowledge, model, relevance });
  return {
    ...own,
    runRoutes(app: HttpApp) {
      runRoutes(app, own.runs);
      externalRunRoutes(app, answering);
      runPostRoutes(app, answering);
    },
    decisionRoutes: (app: HttpApp) => invocationRoutes(app, answering),
    liveCommands: runLiveCommands(own.runs),
    reactors: [
      invocationReactor({ ...answering, relevance: judge }),
      agentRuns(answering),
      runEnds(answering),
      runQuestions(answering),
      externalRuns(answering),
      endedInvocations(answering),
    ],
  };
}

/**
 * Prompts that this process begins at a time, from the look-up of the agent to the open stream, and reads of the log for the
 * runs that it waits for. If hundreds of requests arrive together, their steps would otherwise stay together, and other
 * requests wait for the event loop meanwhile. Beyond the queues, prompts are 429 (of the organization) or 503.
 */
const POSTING = { permits: 8, permitsOfGroup: 4, maxWaitingInGroup: 1_000, maxWaiting: 10_000 };
const LOOKS = { permits: 4, permitsOfGroup: 2 };

type PromptsDeps = Omit<
  Prompting,
  'budgets' | 'idempotency' | 'looks' | 'pace' | 'posting' | 'readModel' | 'redis' | 'store' | 'topics'
>;

/** Questions to agents over HTTP. Each is a message in a channel, and a run that answers it. */
export function createPrompts(core: Core, deps: PromptsDeps) {
  const { readModel, redis, store, topics } = core;
  const queues = { posting: new FairSemaphore(POSTING), looks: new FairSemaphore(LOOKS), pace: new EventLoopPace() };
  const own = { budgets: new PromptBudgets(core), idempotency: new RedisIdempotencyStore(redis) };
  const prompting: Prompting = { ...deps, ...queues, ...own, readModel, redis, store, topics };
  return {
    routes(app: HttpApp) {
      promptRoute(app, prompting);
      streamPromptRoute(app, prompting);
      publicPromptRoute(app, prompting);
    },
  };
}
