import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import type { Agent } from '#libs/features/agents/index.ts';
import { CHANNEL } from '#libs/features/channels/index.ts';
import { Fault, storeUnavailable } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  commandContext,
  type HttpApp,
  HttpError,
  notFound,
  refuseIfMatch,
  routesTagged,
  setPosition,
  text,
  uuid,
} from '#libs/platform/http/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import type { Prompting } from '../context.ts';
import { begin, postDirectly, type PostedPrompt } from './prompt.post.ts';
import { answerOf, deactivated, endOf, idsOf, type ShownIds } from './prompt.end.ts';

/** Time that a request takes besides its wait for the run. */
export const OVERHEAD_MS = 30_000;

export const promptParams = z.object({ id: uuid({ description: 'Id of the agent' }) });
export const promptText = text({ max: 32_768, description: 'Text for the agent' }).default('');
export const promptBody = z
  .object({ prompt: promptText })
  .meta({ id: 'Prompt', examples: [{ prompt: 'Where is my order?' }] });

const promptAnswerSchema = z
  .object({
    message: z.string().describe("The agent's reply; empty if it has said nothing"),
    run_id: z.string().describe('The run that answered'),
    channel_id: z.string().describe('The direct channel of the caller and the agent'),
  })
  .meta({ id: 'PromptAnswer' });

export const promptErrorSchema = z
  .object({
    detail: z.string(),
    code: z.string(),
    reason: z.string().optional().describe('Why the run failed'),
    run_id: z.string().optional(),
    channel_id: z.string().optional(),
    request_id: z.string(),
  })
  .meta({ id: 'PromptError' });

/** Errors of requests that wait for runs. */
export const runErrors = {
  502: promptErrorSchema.describe('The run has failed'),
  504: promptErrorSchema.describe('There is no answer in time'),
};

const { writes } = routesTagged('agents');

export function promptRoute(app: HttpApp, prompting: Prompting): void {
  app.post(
    '/api/v1/agents/:id/prompt',
    {
      preHandler: refuseIfMatch,
      handlerTimeout: prompting.limits.timeoutMs + OVERHEAD_MS,
      ...writes({
        operationId: 'promptAgent',
        summary: 'Send a prompt to an agent, and wait for its reply',
        description:
          "The prompt is a message in the caller's direct channel with the agent, and the reply a run there. A request that " +
          'waited for too long is 504, and one that is disconnected cancels nothing: repeated with the same ' +
          '`Idempotency-Key`, it gets the answer of the same run.',
        params: promptParams,
        body: promptBody,
        response: { 200: promptAnswerSchema, ...runErrors },
      }),
    },
    async (request, reply) => {
      const { organizationId } = request.principal;
      const posted = await begin(request, organizationId, prompting, async () => {
        const agent = await agentInLog(organizationId, request.params.id, prompting);
        requireAnswering(agent, prompting);
        return postDirectly(commandContext(request), { agent, text: request.body.prompt }, prompting);
      });
      const shown = idsOf(posted);
      const message = await awaitAnswer(request, reply, { posted, shown }, prompting);
      setPosition(request, reply, { stream: streamName(CHANNEL, posted.channelId), revision: posted.revision });
      return { message, ...shown };
    },
  );
}

/** The agent as the log has it. @throws HttpError 404 if the organization has no such agent; `Fault` `store_unavailable` */
export async function agentInLog(
  organizationId: EntityId,
  id: EntityId,
  { agents }: Pick<Prompting, 'agents'>,
): Promise<Agent> {
  const agent = await agents.agent(organizationId, id);
  if (agent === null) throw notFound();
  return agent;
}

/** @throws HttpError 409 for an agent that is deactivated; `Fault` `store_unavailable` without Redis, which runs need */
export function requireAnswering({ isActive }: Agent, { redis }: Pick<Prompting, 'redis'>): void {
  if (!isActive) throw deactivated();
  if (!redis.isReady) throw storeUnavailable('Redis');
}

/**
 * Waits for the answer to a prompt, as long as the client does, the process runs and the limit allows. The end of the
 * wait ends nothing else.
 *
 * @throws HttpError of {@link answerOf}, and 504; `Fault` `stopping`, `store_unavailable`
 */
export async function awaitAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  { posted, shown }: { readonly posted: PostedPrompt; readonly shown: ShownIds },
  prompting: Prompting,
): Promise<string> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(notYet(shown)), prompting.limits.timeoutMs);
  const onStop = (): void => over.abort(stopped('This process is stopping'));
  // This error reaches no client; it releases the Idempotency-Key.
  const onGone = (): void => over.abort(stopped('The client has left'));
  const { closing } = request.server;
  closing.addEventListener('abort', onStop, { once: true });
  if (closing.aborted) onStop();
  reply.raw.once('close', onGone);
  // It may have left while the prompt was posted.
  if (reply.raw.destroyed) onGone();
  try {
    return answerOf(await endOf(posted, prompting, over.signal), shown);
  } finally {
    clearTimeout(timer);
    closing.removeEventListener('abort', onStop);
    reply.raw.removeListener('close', onGone);
  }
}

function notYet(shown: ShownIds): HttpError {
  const detail = 'The agent has not answered yet: its run continues';
  return new HttpError(504, 'answer_pending', detail, { 'retry-after': '5' }, shown);
}

function stopped(why: string): Fault {
  return new Fault('stopping', `${why}; the agent's run continues`, { retryAfterSeconds: 2 });
}
