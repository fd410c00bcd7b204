/** Invocations: which agents answer a message, and why. One stream, `invocation-<id>`, for each message and agent. */
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Channels } from '#libs/features/channels/index.ts';
import type { Directory } from '#libs/features/users/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { invocationRoutes } from './invocation.http.ts';
import { type InvocationParts, invocationReactor } from './invocation.reactor.ts';
import { invocationEntity, Invocations } from './invocation.read.ts';
import type { Runs } from '../run/run.read.ts';
import { RelevanceJudge, type RelevanceParts } from './relevance-judge.ts';

interface InvocationsDeps extends Pick<RelevanceParts, 'knowledge' | 'relevance'> {
  readonly agents: InvocationParts['agents'];
  readonly channels: Channels;
  readonly interactions: { readonly commands: InvocationParts['interactions'] };
  readonly directory: Pick<Directory, 'application'>;
  readonly runs: Runs;
}

export const invocationsModule = { name: 'invocations', projections: [invocationEntity.projection] } satisfies Module;

export function createInvocations(core: Core, { knowledge, relevance, directory, runs, ...deps }: InvocationsDeps) {
  const invocations = new Invocations(core);
  const { channels } = deps;
  return {
    invocations,
    routes: (app: HttpApp) => invocationRoutes(app, { invocations, channels }),
    reactors: [
      invocationReactor({
        ...deps,
        interactions: deps.interactions.commands,
        invocations,
        relevance: new RelevanceJudge({ knowledge, model: core.model, relevance }),
        requestRun: (context, run) => runs.request(context, run),
        application: (organizationId) => directory.application(organizationId),
        store: core.store,
      }),
    ],
  };
}
