import { z } from 'zod';

import { refuse } from '#libs/kernel/decider.ts';
import { declareReads, EntityReplies, type Presentation } from '#libs/platform/entity/index.ts';
import {
  type HttpApp,
  idParam,
  idReference,
  liveCommand,
  type LiveCommandType,
  type MemberRoute,
  notFound,
  routesTagged,
} from '#libs/platform/http/index.ts';

import { runEntity, type Runs, runSchema } from './run.read.ts';
import { decideCancel, type Run } from './run.ts';

const params = z.object({ id: idParam('Id of the run') });
const { writes } = routesTagged('runs');
const response = { 200: runSchema };

export function runRoutes(app: HttpApp, runs: Runs): void {
  const replies = new EntityReplies(runs, {});
  const ofChannelOf: MemberRoute = {
    channelOf: async ({ principal, params: of }) =>
      (await runs.find(principal.organizationId, (of as z.output<typeof params>).id))?.channelId ?? null,
  };

  declareReads(app, new EntityReplies(runs, {}, WITH_DETAIL), {
    path: '/api/v1/runs',
    tag: 'runs',
    params,
    schema: runSchema,
    one: { operationId: 'getRun', summary: 'Read a run of an agent, with its steps', members: ofChannelOf },
  });

  app.post(
    '/api/v1/runs/:id/cancel',
    writes(
      {
        operationId: 'cancelRun',
        summary: 'Cancel a run; the text that was written so far is kept',
        params,
        response,
      },
      ofChannelOf,
    ),
    (request, reply) => replies.sendUpdated(request, reply, decideCancel),
  );
}

/** Keys with the scope `admin` see the words of the model's endpoint, which frames and stored documents lack. */
const WITH_DETAIL: Presentation<Run> = {
  isOfRevision: true,
  of: async (runs, { principal }) =>
    runs.map((run) => {
      const shown = runEntity.resource(run);
      if (run.failure === null || !principal.scopes.has('admin')) return shown;
      const { reason, message, detail = null } = run.failure;
      return { ...shown, error: { reason, message, detail } };
    }),
};

/** The commands of sockets: the same as `POST /api/v1/runs/{id}/cancel`, for the runs of the socket's channel. */
export function runLiveCommands(runs: Runs): readonly LiveCommandType[] {
  return [
    liveCommand({
      type: 'run.cancel',
      summary: 'Cancel a run of an agent in this channel; the text that was written so far is kept',
      data: z.object({ run_id: idReference({ description: 'Id of the run' }) }).meta({ id: 'RunCancel' }),
      isDurable: true,
      async run({ context, channelId, data }) {
        const result = await runs.update(context, data.run_id, (run) =>
          run.channelId === channelId ? decideCancel(run) : refuse({ reason: 'not_found' as const }),
        );
        if (!result.ok) throw notFound();
        // The channel shows the end of the run later, by events of its own.
        return null;
      },
    }),
  ];
}
