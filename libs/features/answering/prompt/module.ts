/** Prompts: questions to agents over HTTP. Each is a message in a channel, and a run that answers it. */
import type { Agents } from '#libs/features/agents/index.ts';
import { type HttpApp, RedisIdempotencyStore } from '#libs/platform/http/index.ts';
import { FairSemaphore } from '#libs/platform/lifecycle/index.ts';
import type { Core, Module, Platform } from '#libs/platform/runtime/index.ts';

import { promptBudgetEntity, PromptBudgets } from './prompt-budget.read.ts';
import { promptRoute } from './prompt.http.ts';
import { publicPromptRoute } from './public-prompt.http.ts';
import { type StreamPromptParts, streamPromptRoute } from './stream-prompt.http.ts';

interface PromptsDeps extends Omit<StreamPromptParts, keyof Platform | 'posting' | 'looks' | 'idempotency'> {
  readonly agents: Agents;
}

/**
 * Prompts that this process begins at a time, from the look-up of the agent to the open stream, and reads of the log for the
 * runs that it waits for. If hundreds of requests arrive together, their steps would otherwise stay together, and other
 * requests wait for the event loop meanwhile. Beyond the queues, prompts are 429 (of the organization) or 503.
 */
const POSTING = { permits: 8, permitsOfGroup: 4, maxWaitingInGroup: 1_000, maxWaiting: 10_000 };
const LOOKS = { permits: 4, permitsOfGroup: 2 };

export const promptsModule = { name: 'prompts', projections: [promptBudgetEntity.projection] } satisfies Module;

export function createPrompts(core: Core, deps: PromptsDeps) {
  const { topics, redis, store } = core;
  const budgets = new PromptBudgets(core);
  const turns = { posting: new FairSemaphore(POSTING), looks: new FairSemaphore(LOOKS) };
  const parts = { ...deps, ...turns, topics, redis, store, idempotency: new RedisIdempotencyStore(redis) };
  return {
    routes(app: HttpApp) {
      promptRoute(app, parts);
      streamPromptRoute(app, parts);
      publicPromptRoute(app, { ...parts, budgets });
    },
  };
}
