import { z } from 'zod';

import type { Channels } from '#libs/features/channels/index.ts';
import { EntityReplies } from '#libs/platform/entity/index.ts';
import {
  type HttpApp,
  idParam,
  idReference,
  notFound,
  OF_CHANNEL,
  pageMetaSchema,
  pageQuery,
  queryBoolean,
  routesTagged,
} from '#libs/platform/http/index.ts';

import { type Invocations, invocationSchema } from './invocation.read.ts';

const params = z.object({ id: idParam('Id of the channel') });
const querystring = z.object({
  ...pageQuery,
  agent_id: idReference({ description: 'Only decisions on this agent' }).optional(),
  message_id: idReference({ description: 'Only decisions on this message' }).optional(),
  invoked: queryBoolean({ description: 'Only agents that were invoked, or that were not' }).optional(),
});
const pageSchema = z.object({ items: z.array(invocationSchema), meta: pageMetaSchema }).meta({ id: 'InvocationPage' });

const { reads } = routesTagged('agents');

export function invocationRoutes(
  app: HttpApp,
  { invocations, channels }: { readonly invocations: Invocations; readonly channels: Pick<Channels, 'channel'> },
): void {
  const replies = new EntityReplies(invocations, {});

  app.get(
    '/api/v1/channels/:id/invocations',
    reads(
      {
        operationId: 'listInvocations',
        summary: 'List which agents were asked to answer which messages of a channel, and why; newest first',
        params,
        querystring,
        response: { 200: pageSchema },
      },
      OF_CHANNEL,
    ),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const { id } = request.params;
      if ((await channels.channel(organizationId, id)) === null) throw notFound();
      const { agent_id: agent, message_id: message, invoked } = request.query;
      return replies.sendPage(request, reply, organizationId, { channel: id, agent, message, invoked });
    },
  );
}
