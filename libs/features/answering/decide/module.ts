/** Invocations: which agents answer a message, and why. One stream, `invocation-<id>`, for each message and agent. */
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Channels } from '#libs/features/channels/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { invocationRoutes } from './invocation.http.ts';
import { type InvocationParts, invocationReactor } from './invocation.reactor.ts';
import { invocationEntity, Invocations } from './invocation.read.ts';
import { RelevanceJudge, type RelevanceParts } from './relevance-judge.ts';

type InvocationsDeps = Omit<InvocationParts, 'invocations' | 'store' | 'channels' | 'relevance'> &
  Pick<RelevanceParts, 'knowledge'> & { readonly channels: Channels };

export const invocationsModule = {
  name: 'invocations',
  projections: [invocationEntity.projection],
  create(core: Core, deps: InvocationsDeps) {
    const invocations = new Invocations(core);
    const relevance = new RelevanceJudge({ ...deps, model: core.model, relevance: core.relevance });
    return {
      invocations,
      routes: (app: HttpApp) => invocationRoutes(app, { invocations, channels: deps.channels }),
      reactors: [invocationReactor({ ...deps, relevance, invocations, store: core.store })],
    };
  },
} satisfies Module;
