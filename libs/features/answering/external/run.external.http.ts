import { LRUCache } from 'lru-cache';
import { z } from 'zod';

import { requireAgent } from '#libs/features/agents/index.ts';
import { type InteractionRef, postInteractionBody } from '#libs/features/channels/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { EntityReplies, type RejectionErrors } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  conflict,
  type HttpApp,
  idParam,
  notFound,
  type Principal,
  refuseIfMatch,
  routesTagged,
  text,
} from '#libs/platform/http/index.ts';

import { metadataOf } from '../run/response.ts';
import type { Answering } from '../context.ts';
import { ChannelRefusal, RunInChannel } from '../run/run.channel.ts';
import { messagesFor } from '../run/run.conversation.ts';
import { decideFailure, decideResponse, type ExternalRejection, obstacleOf } from './run.external.ts';
import { type Runs, runSchema } from '../run/run.read.ts';
import type { Run } from '../run/run.ts';

type Answers = Pick<Answering, 'channels' | 'organizations' | 'runs'>;

const MAX_TEXT = 100_000;
/** Responses of runs whose deltas this process has taken. */
const MAX_RESPONSES = 1_000;

const params = z.object({ id: idParam('Id of the run') });
const ofAgent = routesTagged('agents').requiring('agent');
const textOf = (min: number) => text({ min, max: MAX_TEXT, description: 'Markdown' });

const conversationSchema = z
  .object({
    messages: z.array(
      z.object({
        role: z.enum(['user', 'assistant']).meta({ id: 'ConversationRole' }),
        text: z.string().describe('Its words; empty for a payment, for instance'),
        content: postInteractionBody.shape.content.describe('All that was said; what other agents say is data'),
      }),
    ),
  })
  .meta({ id: 'RunConversation', description: 'Oldest first; the last message is the one to answer' });

const deltaBody = z
  .object({
    offset: z.int().min(0).nullish().describe('`length` of the last answer; null or absent replaces the draft'),
    text: textOf(0),
  })
  .meta({ id: 'RunDelta', examples: [{ offset: 0, text: 'It arrives' }] });
const responseBody = z
  .object({ text: textOf(1) })
  .meta({ id: 'RunResponse', examples: [{ text: 'It arrives tomorrow.' }] });
const failureBody = z
  .object({ message: text({ min: 1, max: 500, description: 'Users read it: a sentence without a full stop' }) })
  .meta({ id: 'RunFailure', examples: [{ message: 'The model does not answer' }] });

const CONFLICTS: Readonly<Record<ExternalRejection['reason'], string>> = {
  not_external: 'Parley itself answers this run',
  not_claimed: 'No worker has begun the run',
  run_ended: 'The run has ended',
  run_answered: 'The run has an answer already',
};
export const conflictOf = ({ reason }: ExternalRejection) => conflict(CONFLICTS[reason], reason);
const errors: RejectionErrors<ExternalRejection> = {
  not_external: conflictOf,
  not_claimed: conflictOf,
  run_ended: conflictOf,
  run_answered: conflictOf,
};

/** Answers of external agents, each with a key of that agent. */
export function externalRunRoutes(app: HttpApp, answering: Answers): void {
  const { runs } = answering;
  const replies = new EntityReplies(runs, errors);

  app.get(
    '/api/v1/runs/:id/conversation',
    ofAgent({
      operationId: 'getRunConversation',
      summary: 'Read what an external agent is to answer',
      params,
      response: { 200: conversationSchema },
    }),
    async (request) => {
      const run = await ownRun(runs, request.principal, request.params.id);
      const messages = await messagesFor(answering.channels.queries, run);
      if (messages === null) throw notFound();
      return { messages };
    },
  );

  app.post(
    '/api/v1/runs/:id/response',
    ofAgent({
      operationId: 'answerRun',
      summary: 'Answer a run; the response replaces its draft. Repeating it has no effect',
      params,
      body: responseBody,
      response: { 200: runSchema },
    }),
    async (request, reply) => {
      const { id } = await ownRun(runs, request.principal, request.params.id);
      const decide = (run: Run) => decideResponse(run, request.body.text);
      return replies.sendResult(request, reply, await runs.update(commandContext(request), id, decide));
    },
  );

  app.post(
    '/api/v1/runs/:id/failure',
    ofAgent({
      operationId: 'failRun',
      summary: 'Fail a run; its draft is kept as the response. Repeating it has no effect',
      params,
      body: failureBody,
      response: { 200: runSchema },
    }),
    async (request, reply) => {
      const { id } = await ownRun(runs, request.principal, request.params.id);
      const decide = (run: Run) => decideFailure(run, request.body.message);
      return replies.sendResult(request, reply, await runs.update(commandContext(request), id, decide));
    },
  );

  deltaRoute(app, answering);
}

function deltaRoute(app: HttpApp, answering: Answers): void {
  const { runs } = answering;
  const responses = new LRUCache<EntityId, InteractionRef>({ max: MAX_RESPONSES });
  app.post(
    '/api/v1/runs/:id/deltas',
    {
      preHandler: refuseIfMatch,
      ...ofAgent({
        operationId: 'writeRunDelta',
        summary: 'Append to the draft of the answer of a run, or replace it',
        description: 'Subscribers of the channel read it. The first one posts the response, incomplete.',
        params,
        body: deltaBody,
        response: { 200: z.object({ length: z.int().describe('Of the draft') }).meta({ id: 'RunDraft' }) },
      }),
    },
    async (request) => {
      const run = await ownRun(runs, request.principal, request.params.id);
      const obstacle = obstacleOf(run);
      if (obstacle !== null) throw conflictOf(obstacle);
      const { offset = null, text: piece } = request.body;
      const length = (offset ?? 0) + piece.length;
      const channel = new RunInChannel(run, answering, commandContext(request));
      const response = responses.get(run.id) ?? (await postedResponse(run, channel));
      if (response === null) return { length };
      responses.set(run.id, response);
      const put = await channel.putDraft(response, offset, piece);
      if (!put.ok) throw draftConflict(put.reason);
      return { length };
    },
  );
}

type DraftFailure = Extract<Awaited<ReturnType<RunInChannel['putDraft']>>, { readonly ok: false }>['reason'];

function draftConflict(reason: DraftFailure): Error {
  switch (reason) {
    case 'wrong_offset':
      return conflict('The draft does not have this length; replace it', reason);
    case 'too_long':
      return conflict('The draft cannot be longer', 'draft_too_long');
    default:
      // The run has ended meanwhile.
      return conflictOf({ reason: 'run_ended' });
  }
}

/**
 * Posts the response, incomplete. The run may have ended meanwhile: then what shows its end is in the place of the response.
 *
 * @returns null for the answer to another agent, which the channel does not show
 */
export async function postedResponse(run: Run, channel: RunInChannel): Promise<InteractionRef | null> {
  const model = run.claim?.model ?? { kind: '', name: '' };
  const metadata = metadataOf(run, { kind: 'external', name: model.name });
  try {
    const posted = { role: 'agent_response', content: [], name: 'response', complete: false, metadata } as const;
    return (await channel.post(posted))?.ref ?? null;
  } catch (error) {
    if (error instanceof ChannelRefusal) throw conflict('The channel does not take the answer', error.reason);
    throw error;
  }
}

/** @throws HttpError 404 for runs of other agents, as for missing ones */
export async function ownRun(runs: Runs, principal: Principal, id: EntityId): Promise<Run> {
  const run = await runs.find(principal.organizationId, id);
  if (run === null) throw notFound();
  requireAgent(principal, run.agentId);
  return run;
}
