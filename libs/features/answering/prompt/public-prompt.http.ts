import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import type { Agent } from '#libs/features/agents/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import { newId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import {
  callerAddress,
  type HttpApp,
  HttpError,
  invalidBody,
  refuseIfMatch,
  text,
  tooManyRequests,
  unauthorized,
  Windows,
} from '#libs/platform/http/index.ts';

import type { Prompting } from '../context.ts';
import {
  awaitAnswer,
  OVERHEAD_MS,
  promptErrorSchema,
  promptParams,
  promptText,
  requireAnswering,
  runErrors,
} from './prompt.http.ts';
import { begin, channelOf, type PostedPrompt, postIn } from './prompt.post.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const ANONYMOUS = { type: 'non_authenticated_user' } as const;

const publicPromptBody = z
  .object({
    prompt: promptText,
    conversation_id: text({ max: 256, description: 'From the previous answer. Default: a new conversation' }).nullish(),
  })
  .meta({ id: 'PublicPrompt', examples: [{ prompt: 'When do you open?', conversation_id: null }] });

const publicAnswerSchema = z
  .object({
    message: z.string().describe("The agent's reply; empty if it has said nothing"),
    conversation_id: z.string().describe('Continues the conversation; a secret of the caller'),
  })
  .meta({ id: 'PublicPromptAnswer' });

const refusedSchema = promptErrorSchema.describe('The agent takes no prompts without an API key');

type PublicRequest = FastifyRequest<{ Body: z.output<typeof publicPromptBody> }>;

export function publicPromptRoute(app: HttpApp, prompting: Prompting): void {
  const admitted = new WeakMap<FastifyRequest, Agent>();
  const { publicPerAddress: max, timeoutMs } = prompting.limits;
  const addresses = max === 0 ? null : new Windows({ max, windowMs: MINUTE_MS });

  /** Before the request is read: agents that are not public answer it as routes that need a key do. */
  async function admit(request: FastifyRequest): Promise<void> {
    const seconds = addresses?.take(callerAddress(request)) ?? 0;
    if (seconds > 0) throw tooManyRequests(seconds);
    const params = promptParams.safeParse(request.params);
    const agent = params.success ? await prompting.agents.publicAgent(params.data.id) : null;
    if (agent === null) throw unauthorized();
    admitted.set(request, agent);
  }

  app.post(
    '/api/v1/agents/:id/public_prompt',
    {
      config: { public: 'counted' },
      onRequest: admit,
      preHandler: refuseIfMatch,
      handlerTimeout: timeoutMs + OVERHEAD_MS,
      schema: {
        tags: ['agents'],
        operationId: 'promptPublicAgent',
        summary: 'Send a prompt to an agent with `widget_enabled`, without an API key',
        description:
          'Limited per address and minute, and per agent and day. All other agents, and unknown ids, are 401. ' +
          'There is no `Idempotency-Key` without an account.',
        params: promptParams,
        body: publicPromptBody,
        response: { 200: publicAnswerSchema, 401: refusedSchema, ...runErrors },
      },
    },
    async (request, reply) => {
      const agent = admitted.get(request);
      if (agent === undefined) throw unauthorized();
      return answer(request, reply, agent, prompting);
    },
  );
}

async function answer(request: PublicRequest, reply: FastifyReply, agent: Agent, prompting: Prompting) {
  const { tokens } = request.server;
  const { conversation_id: conversation, prompt } = request.body;
  const context = `public conversation with ${agent.id}`;
  const known = conversation ? tokens.open([context], conversation) : null;
  if (conversation && typeof known !== 'string') {
    throw invalidBody(request.body, 'conversation_id', 'there is no such conversation with this agent');
  }
  requireAnswering(agent, prompting);
  const posted = await begin(request, agent.organizationId, prompting, async () => {
    await takeFromBudget(contextOf(request, agent), agent, prompting);
    const said = { text: prompt, channelId: known as string | null };
    return post(contextOf(request, agent), agent, said, prompting);
  });
  const shown = { conversation_id: tokens.seal([context], posted.channelId) };
  return { message: await awaitAnswer(request, reply, { posted, shown }, prompting), ...shown };
}

/** In the conversation; in a new one if the organization has archived it. */
async function post(
  context: CommandContext,
  agent: Agent,
  { text: said, channelId }: { readonly text: string; readonly channelId: string | null },
  prompting: Prompting,
): Promise<PostedPrompt> {
  const prompt = { agent, text: said, participant: ANONYMOUS };
  for (const id of [channelId, newId()]) {
    if (id === null) continue;
    const posted = await postIn(context, await channelOf(context, id, prompt, ANONYMOUS, prompting), prompt, prompting);
    if (posted !== null) return posted;
  }
  throw new TypeError('a new channel is archived');
}

/** Fails closed: without the log, nothing is admitted. @throws HttpError 429 until the next day in UTC */
async function takeFromBudget(context: CommandContext, agent: Agent, { budgets, limits }: Prompting) {
  if (await budgets.admit(context, agent.id, limits.publicPerAgent)) return;
  const seconds = Math.ceil((DAY_MS - (Date.parse(context.at) % DAY_MS)) / 1_000);
  const detail = 'The agent answers no more prompts without an account today';
  throw new HttpError(429, 'daily_budget_used', detail, { 'retry-after': String(seconds) });
}

function contextOf({ id: correlationId, traceparent }: FastifyRequest, { organizationId }: Agent): CommandContext {
  const actor = { type: 'system', id: 'public-prompt' } as const;
  return { commandId: newId(), organizationId, actor, at: systemClock.now(), correlationId, traceparent };
}
