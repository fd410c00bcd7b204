/** Posts of external agents in the channel of a run besides its response, and the list of their runs. */
import { z } from 'zod';

import { requireAgent } from '#libs/features/agents/index.ts';
import { interactionSchema, postInteractionBody } from '#libs/features/channels/index.ts';
import { derivedId } from '#libs/kernel/ids.ts';
import { EntityReplies } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  conflict,
  type HttpApp,
  idParam,
  invalid,
  jsonMap,
  pageMetaSchema,
  pageQuery,
  refuseIfMatch,
  routesTagged,
  sendJson,
} from '#libs/platform/http/index.ts';

import type { Answering } from '../context.ts';
import { endCalls } from '../run/response.ts';
import { ChannelRefusal, RunInChannel } from '../run/run.channel.ts';
import { runSchema } from '../run/run.read.ts';
import type { CalledTool, Run } from '../run/run.ts';
import {
  type CallRejection,
  decideCall,
  decideCallEnd,
  MAX_CALLS,
  MAX_OPEN_CALLS,
  obstacleOf,
} from './run.external.ts';
import { conflictOf, ownRun } from './run.external.http.ts';

type Answers = Pick<Answering, 'channels' | 'organizations' | 'runs'>;

const ofAgent = routesTagged('agents').requiring('agent');
const params = z.object({ id: idParam('Id of the run') });

const postBody = z
  .object({
    content: postInteractionBody.shape.content
      .min(1)
      .describe(
        'One `tool_call`, `tool_call_update` or `tool_call_result`; or what the agent says besides its response',
      ),
    content_role: z
      .enum(['agent_response', 'agent_reasoning'])
      .optional()
      .describe('Of content that is not of a tool. Default: `agent_response`'),
    metadata: jsonMap().nullish(),
  })
  .meta({ id: 'RunPost', examples: [{ content: [{ type: 'text', text: 'I look it up.' }] }] });
type PostBody = z.output<typeof postBody>;
type Item = PostBody['content'][number];

const postedSchema = z
  .object({
    interaction: interactionSchema
      .nullable()
      .describe('As the channel shows it; null for the answer to another agent, which the channel does not show'),
  })
  .meta({ id: 'PostedByRun' });

/** Items that agents may post; users post the others. */
const OF_AGENTS: ReadonlySet<Item['type']> = new Set([
  'text',
  'media',
  'custom_content',
  'request_payment',
  'complete_payment',
  'cancel_payment',
]);

type ToolItem = Extract<Item, { readonly type: 'tool_call' | 'tool_call_update' | 'tool_call_result' }>;
const isOfTool = (item: Item): item is ToolItem => item.type.startsWith('tool_call');

export function runPostRoutes(app: HttpApp, answering: Answers): void {
  postRoute(app, answering);
  listRoute(app, answering);
}

function postRoute(app: HttpApp, answering: Answers): void {
  app.post(
    '/api/v1/runs/:id/interactions',
    {
      preHandler: refuseIfMatch,
      ...ofAgent({
        operationId: 'postRunInteraction',
        summary: 'Show a tool call, its updates and its result, a payment request or other content below the message',
        description:
          'A call and its result are posted once, by their `tool_call_id`; the id of the run is put before it.',
        params,
        body: postBody,
        response: { 200: postedSchema },
      }),
    },
    async (request, reply) => {
      const run = await ownRun(answering.runs, request.principal, request.params.id);
      const context = commandContext(request);
      const post = new RunPosts(run, answering, context);
      try {
        const document = await post.post(request.body);
        return await sendJson(reply, `{"interaction":${document === null ? 'null' : document.toString()}}`);
      } catch (error) {
        if (!(error instanceof ChannelRefusal)) throw error;
        throw conflict('The channel does not take the interaction', error.reason);
      }
    },
  );
}

/** Posts of one request. */
class RunPosts {
  readonly #run: Run;
  readonly #runs: Answers['runs'];
  readonly #channel: RunInChannel;
  readonly #context: ReturnType<typeof commandContext>;

  constructor(run: Run, answering: Answers, context: ReturnType<typeof commandContext>) {
    this.#run = run;
    this.#runs = answering.runs;
    this.#channel = new RunInChannel(run, answering, context);
    this.#context = context;
  }

  /** @returns the interaction as JSON; null if the channel does not show it @throws HttpError; ChannelRefusal */
  async post({ content, content_role: role = 'agent_response', metadata }: PostBody) {
    const more = { metadata: { ...metadata, run_id: this.#run.id } };
    const obstacle = obstacleOf(this.#run);
    if (obstacle !== null) throw conflictOf(obstacle);
    const [item] = content;
    if (item !== undefined && isOfTool(item)) {
      if (content.length > 1) throw invalid(['body', 'content'], 'what is of a tool is posted alone', content);
      return this.#postOfTool(item, more);
    }
    const index = content.findIndex(({ type }) => !OF_AGENTS.has(type));
    if (index >= 0) {
      const type = content[index]?.type;
      throw invalid(['body', 'content', index, 'type'], 'an agent does not post this here', type);
    }
    const posted = await this.#channel.post({ role, content, name: `given ${this.#context.commandId}`, ...more });
    return posted?.document ?? null;
  }

  async #postOfTool(item: ToolItem, more: { readonly metadata: Record<string, unknown> }) {
    const { tool_call_id: id, tool_name: name } = item;
    if (!id) throw invalid(['body', 'content', 0, 'tool_call_id'], 'a call has an id', id ?? null);
    const call = { id, name };
    switch (item.type) {
      case 'tool_call':
        return this.#postCall(call, item, more);
      case 'tool_call_update':
        return ofKnownCall(call, () => this.#channel.update(call, item.sequence, item.update));
      case 'tool_call_result': {
        const posted = await ofKnownCall(call, () => this.#channel.postResult(call, ownMembers(item), more));
        await this.#recordEnd(id, 'ToolResultPosted.v1');
        return posted?.document ?? null;
      }
    }
  }

  /** The run may have been deleted from the log or ended meanwhile: then nothing is left to record. */
  async #recordEnd(callId: string, type: Parameters<typeof decideCallEnd>[2]): Promise<void> {
    const context = { ...this.#context, commandId: derivedId(this.#context.commandId, type) };
    await this.#runs.update(context, this.#run.id, (run) => decideCallEnd(run, callId, type));
  }

  async #postCall(call: CalledTool, item: ToolItem, more: { readonly metadata: Record<string, unknown> }) {
    const recorded = await this.#runs.update<CallRejection>(this.#context, this.#run.id, (run) =>
      decideCall(run, call),
    );
    if (!recorded.ok) throw refusalOf(recorded.rejection);
    const posted = await this.#channel.postCall(call, ownMembers(item), more).catch(async (error: unknown) => {
      if (error instanceof ChannelRefusal) await this.#recordEnd(call.id, 'ToolCallRefused.v1');
      throw error;
    });
    // The end of the run, if it came in between, did not find the call in the channel.
    const now = await this.#runs.inLog(this.#run.organizationId, this.#run.id);
    if (now?.endedAt != null) await endCalls(now, this.#channel);
    return posted?.document ?? null;
  }
}

/** Without the names, which the run adds. */
function ownMembers({ type: _type, tool_name: _name, tool_call_id: _id, ...own }: ToolItem): object {
  return own;
}

async function ofKnownCall<T>({ id }: CalledTool, post: () => Promise<T>): Promise<T> {
  try {
    return await post();
  } catch (error) {
    if (!(error instanceof ChannelRefusal) || error.reason !== 'parent_not_found') throw error;
    throw invalid(['body', 'content', 0, 'tool_call_id'], 'the run has posted no such call', id);
  }
}

function refusalOf(rejection: CallRejection | { readonly reason: 'not_found' }): Error {
  switch (rejection.reason) {
    case 'too_many_calls':
      return conflict(
        `A run has at most ${MAX_OPEN_CALLS} calls without a result, and ${MAX_CALLS} in all`,
        'too_many_calls',
      );
    case 'not_found':
      return conflictOf({ reason: 'run_ended' });
    default:
      return conflictOf(rejection);
  }
}

const status = runSchema.shape.status;
const runPage = z.object({ items: z.array(runSchema), meta: pageMetaSchema }).meta({ id: 'RunPage' });

/** A program that was restarted asks for the runs that it has not answered. */
function listRoute(app: HttpApp, { runs }: Answers): void {
  const replies = new EntityReplies(runs, {});
  app.get(
    '/api/v1/agents/:id/runs',
    ofAgent({
      operationId: 'listAgentRuns',
      summary: 'List the runs of an external agent, newest first, with a key of its own',
      params: z.object({ id: idParam('Id of the agent') }),
      querystring: z.object({
        ...pageQuery,
        status: status.optional().describe('Only these; `running`: those that are to be answered'),
      }),
      response: { 200: runPage },
    }),
    (request, reply) => {
      const { principal, params: of, query } = request;
      requireAgent(principal, of.id);
      return replies.sendPage(request, reply, principal.organizationId, { agent: of.id, status: query.status });
    },
  );
}
