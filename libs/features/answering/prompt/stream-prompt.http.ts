import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import type { Agent } from '#libs/features/agents/index.ts';
import { grantOf, openLiveChannel } from '#libs/features/realtime/index.ts';
import type { ChannelSequence, StreamRevision } from '#libs/kernel/event.ts';
import { Fault } from '#libs/kernel/faults.ts';
import {
  beginEventStream,
  commandContext,
  eventStreamResponse,
  type HttpApp,
  refuseIfMatch,
  requireEventStreams,
  routesTagged,
  runRequestOnce,
} from '#libs/platform/http/index.ts';

import { CLOSE, type LiveStream } from '#libs/platform/live/index.ts';

import type { Prompting } from '../context.ts';
import { cursorOf, resumedPrompt, type ResumedPrompt } from './prompt.cursor.ts';
import { agentInLog, promptBody, promptParams, requireAnswering } from './prompt.http.ts';
import { begin, postDirectly, type PostedPrompt } from './prompt.post.ts';
import { endOf, outcomeOf } from './prompt.end.ts';
import { TurnStream } from './turn-stream.ts';

const { writes } = routesTagged('agents');

export function streamPromptRoute(app: HttpApp, prompting: Prompting): void {
  const { config, schema } = writes({
    operationId: 'streamPrompt',
    summary: 'Send a prompt to an agent, and stream its run as server-sent events',
    description:
      'Posts the prompt as `promptAgent` does. The frames are those of the channel, of the turn of the prompt alone (see ' +
      '`/asyncapi.json`), between the events `prompt`, with the ids, and `answer`, with the outcome. With `Last-Event-ID`, ' +
      'the stream of the prompt that it names is resumed, and nothing is posted.',
    params: promptParams,
    body: promptBody,
    response: { 200: eventStreamResponse[200] },
  });
  app.post(
    '/api/v1/agents/:id/stream_prompt',
    { preHandler: refuseIfMatch, config: { ...config, handlesIdempotencyKey: true }, schema },
    async (request, reply) => {
      requireEventStreams(request);
      const { organizationId } = request.principal;
      return begin(request, organizationId, prompting, async () => {
        const agent = await agentInLog(organizationId, request.params.id, prompting);
        const resumed = await resumedPrompt(request, agent, prompting.store);
        const started = resumed ?? (await newPrompt(request, agent, request.body.prompt, prompting));
        return openTurnStream(request, reply, { isNew: resumed === null, ...started }, prompting);
      });
    },
  );
}

async function newPrompt(
  request: FastifyRequest,
  agent: Agent,
  text: string,
  prompting: Prompting,
): Promise<ResumedPrompt> {
  requireAnswering(agent, prompting);
  const posted = await runRequestOnce(request, prompting.idempotency, postedSchema, () =>
    postDirectly(commandContext(request), { agent, text }, prompting),
  );
  return { posted, position: posted.sequence - 1, known: [] };
}

const postedSchema = z.object({
  channelId: z.string(),
  sequence: z.int().transform((value) => value as ChannelSequence),
  organizationId: z.string(),
  messageId: z.string(),
  turnId: z.string(),
  runId: z.string(),
  revision: z.int().transform((value) => value as StreamRevision),
}) satisfies z.ZodType<PostedPrompt>;

interface Opened extends ResumedPrompt {
  readonly isNew: boolean;
}

async function openTurnStream(
  request: FastifyRequest,
  reply: FastifyReply,
  { isNew, posted, position, known }: Opened,
  prompting: Prompting,
): Promise<FastifyReply> {
  const node = prompting.realtime.node();
  const grant = await grantOf(request.principal, posted.channelId, prompting.channels);
  const channel = await openLiveChannel(node, grant, position);
  if (reply.raw.destroyed) return reply.hijack();
  beginEventStream(reply);
  const turn = { turnId: posted.turnId, known, cursorAt: (sequence: number) => cursorOf(posted, sequence) };
  const stream = new TurnStream(node.live, { grant, stream: channel, turn }, reply.raw);
  if (isNew) stream.writeEvent('prompt', shownPrompt(posted), cursorOf(posted, position));
  stream.open(position);
  void finish(stream, channel, posted, prompting);
  return reply;
}

function shownPrompt({ runId, channelId, messageId, turnId }: PostedPrompt): object {
  return { run_id: runId, channel_id: channelId, message_id: messageId, interaction_id: turnId };
}

/** Ends the stream after the last frame of the run. Never rejects. */
async function finish(
  stream: TurnStream,
  channel: LiveStream,
  posted: PostedPrompt,
  prompting: Prompting,
): Promise<void> {
  const gone = new AbortController();
  void stream.closed().then(() => gone.abort());
  try {
    const ending = await endOf(posted, prompting, gone.signal);
    // Posts of the run are in the log by now; the topic may not have brought all of them.
    const head = await prompting.realtime.log.head(posted.organizationId, posted.channelId);
    await channel.reaches(head ?? 0);
    await Promise.race([stream.live, stream.closed()]);
    channel.flush();
    stream.writeEvent('answer', outcomeOf(ending, posted));
    stream.end();
  } catch (error) {
    if (!stream.isOpen) return;
    if (!(error instanceof Fault)) prompting.realtime.node().live.warn(error, 'the stream of a prompt failed');
    stream.close(CLOSE.fault, 'The run cannot be read: connect again and resume');
  }
}
