import { randomBytes } from 'node:crypto';

import { z } from 'zod';

import { accept } from '#libs/kernel/decider.ts';
import { EntityReplies } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  type HttpApp,
  httpUrl,
  requireEndpoint,
  routesTagged,
  sendJson,
} from '#libs/platform/http/index.ts';

import type { Fetcher } from '#libs/platform/fetch/index.ts';

import type { Agents } from './agent.read.ts';
import { agentParams } from './agent.schemas.ts';

const SECRET_BYTES = 24;

const webhookBody = z
  .object({ url: httpUrl().nullable().describe('Gets the invocations of the agent; null removes the webhook') })
  .meta({ id: 'AgentWebhookChange', examples: [{ url: 'https://agents.example.org/parley' }] });

const webhookSchema = z
  .object({
    url: z.string().nullable(),
    secret: z
      .string()
      .nullable()
      .describe('Signs the requests. Only this response has it: null if an `Idempotency-Key` replays it'),
  })
  .meta({ id: 'AgentWebhook' });

export function webhookRoute(
  app: HttpApp,
  {
    agents,
    fetcher,
  }: {
    readonly agents: Agents;
    readonly fetcher: Pick<Fetcher, 'check'>;
  },
): void {
  const replies = new EntityReplies(agents, {});
  app.post(
    '/api/v1/agents/:id/webhook',
    routesTagged('agents').writes({
      operationId: 'setAgentWebhook',
      summary: 'Set the webhook of an external agent, with a new secret, or remove it',
      params: agentParams,
      body: webhookBody,
      response: { 200: webhookSchema },
    }),
    async (request, reply) => {
      const { id } = request.params;
      const { url } = request.body;
      if (url !== null) requireEndpoint(fetcher, url, ['body', 'url']);
      const secret = url === null ? null : `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
      const webhook = url === null || secret === null ? null : { url, sealedSecret: agents.secrets.seal(id, secret) };
      const event = { type: 'AgentWebhookSet.v1', data: { webhook } } as const;
      const agent = replies.accepted(
        request,
        reply,
        await agents.update(commandContext(request), id, () => accept(event)),
      );
      void reply.header('cache-control', 'no-store');
      if (request.idempotentRun !== null) request.idempotentRun.storedBody = JSON.stringify({ url, secret: null });
      // A repeated request that was carried out before has not set this secret.
      const isSet = agent.webhook?.sealedSecret === webhook?.sealedSecret;
      return sendJson(reply, JSON.stringify({ url, secret: isSet ? secret : null }));
    },
  );
}
