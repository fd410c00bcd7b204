import type { FastifyRequest } from 'fastify';
import { z } from 'zod';

import { accept } from '#libs/kernel/decider.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { EntityReplies } from '#libs/platform/entity/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';
import {
  commandContext,
  etagOf,
  eventStreamQuery,
  eventStreamResponse,
  type HttpApp,
  invalidBody,
  notFound,
  openPage,
  routesTagged,
} from '#libs/platform/http/index.ts';

import type { Inboxes } from './agent.inbox.ts';
import { type AgentReplyParts, sendAgent, withName, withNames, withTools } from './agent.replies.ts';
import { type Agents, nameFacet } from './agent.read.ts';
import { agentToolsRoute, changedAgentSchema, requireServerUrls } from './agent.tools.http.ts';
import { webhookRoute } from './agent.webhook.http.ts';
import {
  agentPageSchema,
  agentParams,
  type AgentResource,
  agentSchema,
  createAgentBody,
  listAgentsQuery,
  updateAgentBody,
  type UpdateAgentBody,
} from './agent.schemas.ts';
import {
  type AgentChanges,
  type AgentSettings,
  decideActivate,
  decideDeactivate,
  decideUpdate,
  type GivenMcpServer,
  newAgent,
  settingsSet,
} from './agent.ts';

export interface AgentRouteParts extends AgentReplyParts {
  readonly inboxes: Inboxes;
  readonly fetcher: Pick<Fetcher, 'check'>;
}

const { reads, writes } = routesTagged('agents');
const params = agentParams;
const response = { 200: agentSchema };
const changed = { 200: changedAgentSchema };

export function agentRoutes(app: HttpApp, parts: AgentRouteParts): void {
  readRoutes(app, parts);
  createRoute(app, parts);
  changeRoutes(app, parts);
  agentToolsRoute(app, parts);
  webhookRoute(app, parts);
}

function readRoutes(app: HttpApp, parts: AgentRouteParts): void {
  const { agents, inboxes } = parts;
  const replies = new EntityReplies(agents, {});
  const inboxReplies = new EntityReplies(inboxes, {});

  app.get(
    '/api/v1/agents',
    reads({
      operationId: 'listAgents',
      summary: 'List agents, newest first; without personal ones, unless they are asked for',
      querystring: listAgentsQuery,
      response: { 200: agentPageSchema },
    }),
    async (request) => {
      const { organizationId } = request.principal;
      const { name, category, is_active, personal, knowledge_graph } = request.query;
      const filter = { name: name && nameFacet(name), category, is_active, personal, knowledge_graph };
      const page = openPage(request, request.query, { ...filter, organizationId });
      const found = await agents.page(organizationId, filter, page);
      const resources = found.documents.map(({ json }) => JSON.parse(json.toString()) as AgentResource);
      return { items: await withNames(resources, request.principal, parts), meta: page.meta(found) };
    },
  );

  app.get(
    '/api/v1/agents/:id',
    reads({ operationId: 'getAgent', summary: 'Read an agent', params, response }),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const found = await agents.document(organizationId, request.params.id);
      if (found === null) throw notFound();
      // No 304: the answer shows the names of the organization and the graph, which change without the revision.
      void reply.header('etag', etagOf(found.revision));
      return withName(JSON.parse(found.json.toString()) as AgentResource, request.principal, parts);
    },
  );

  app.get(
    '/api/v1/agents/:id/events',
    reads({
      operationId: 'streamAgentEvents',
      summary: 'Follow the changes of an agent',
      params,
      querystring: z.object(eventStreamQuery),
      response: eventStreamResponse,
    }),
    (request, reply) => replies.sendEvents(request, reply, request.principal.organizationId, request.params.id),
  );

  app.get(
    '/api/v1/agents/:id/invocations/events',
    routesTagged('agents').requiring('agent')({
      operationId: 'streamAgentInvocations',
      summary: 'Follow the invocations of an external agent, with a key of its own',
      params,
      querystring: z.object(eventStreamQuery),
      response: eventStreamResponse,
    }),
    (request, reply) => {
      requireAgent(request.principal, request.params.id);
      return inboxReplies.sendEvents(request, reply, request.principal.organizationId, request.params.id);
    },
  );
}

/** A key acts for the agent whose id is that of its service. @throws HttpError 404 for other agents */
export function requireAgent({ principalType, principalId }: FastifyRequest['principal'], agentId: EntityId): void {
  if (principalType !== 'service' || principalId !== agentId) throw notFound();
}

function createRoute(app: HttpApp, parts: AgentRouteParts): void {
  app.post(
    '/api/v1/agents',
    writes({ operationId: 'createAgent', summary: 'Create an agent', body: createAgentBody, response: changed }),
    async (request, reply) => {
      requireServerUrls(request, parts.fetcher);
      const context = commandContext(request);
      const { name } = request.body;
      const data = newAgent(context.commandId, { ...(await changesOf(request, parts)), name });
      const settings = await settingsOf(context, data.id, request.body, parts);
      const blank = { mcpServers: [], runtime: 'parley' } as const;
      const events = [{ type: 'AgentCreated.v1', data } as const, ...settingsSet(blank, settings)];
      // As `create`: an agent that exists was created by an earlier run of this very command.
      const result = await parts.agents.run(context, data.id, (agent) =>
        agent === null ? accept(...events) : accept(),
      );
      return withTools(await sendAgent(request, reply, result, parts), result, request.body, parts);
    },
  );
}

function changeRoutes(app: HttpApp, parts: AgentRouteParts): void {
  const { agents } = parts;

  app.patch(
    '/api/v1/agents/:id',
    writes({
      operationId: 'updateAgent',
      summary: 'Change an agent: absent fields stay as they are, null gives a field its default',
      params,
      body: updateAgentBody,
      response: changed,
    }),
    async (request, reply) => {
      const { id } = request.params;
      if ((await agents.find(request.principal.organizationId, id)) === null) throw notFound();
      requireServerUrls(request, parts.fetcher);
      const changes = await changesOf(request, parts);
      const context = commandContext(request);
      const settings = await settingsOf(context, id, request.body, parts);
      const result = await agents.update(context, id, (agent) => decideUpdate(agent, changes, settings));
      return withTools(await sendAgent(request, reply, result, parts), result, request.body, parts);
    },
  );

  app.post(
    '/api/v1/agents/:id/deactivate',
    writes({
      operationId: 'deactivateAgent',
      summary: 'Deactivate an agent: it joins no channels and answers nothing until it is activated',
      params,
      response,
    }),
    async (request, reply) => {
      const result = await agents.update(commandContext(request), request.params.id, decideDeactivate);
      return sendAgent(request, reply, result, parts);
    },
  );

  app.post(
    '/api/v1/agents/:id/activate',
    writes({ operationId: 'activateAgent', summary: 'Activate a deactivated agent', params, response }),
    async (request, reply) => {
      const result = await agents.update(commandContext(request), request.params.id, decideActivate);
      return sendAgent(request, reply, result, parts);
    },
  );
}

/** Opens the inbox of an external agent first, so that there always is one. */
async function settingsOf(
  context: CommandContext,
  id: EntityId,
  body: Pick<UpdateAgentBody, 'mcp_servers' | 'runtime'>,
  { agents, inboxes }: Pick<AgentRouteParts, 'agents' | 'inboxes'>,
): Promise<AgentSettings> {
  const { commandId, organizationId, actor, at } = context;
  const runtime = body.runtime === null ? 'parley' : body.runtime;
  const opening = { commandId: derivedId(commandId, 'inbox'), organizationId, actor, at };
  if (runtime === 'external') await inboxes.open(opening, id);
  return { servers: mcpServersOf(id, body, agents), runtime };
}

/** @returns undefined if the request leaves them as they are */
function mcpServersOf(
  agentId: EntityId,
  { mcp_servers: given }: Pick<UpdateAgentBody, 'mcp_servers'>,
  { secrets }: Pick<Agents, 'secrets'>,
): readonly GivenMcpServer[] | undefined {
  if (given === null) return [];
  return given?.map(({ name, url, tools = null, token }) => {
    return { name, url, tools, sealedToken: token && secrets.seal(agentId, token) };
  });
}

/** @throws ValidationFailure 422 for a graph that the organization does not have */
async function changesOf(
  { body, principal }: { readonly body: UpdateAgentBody; readonly principal: FastifyRequest['principal'] },
  { knowledge }: Pick<AgentRouteParts, 'knowledge'>,
): Promise<AgentChanges> {
  const { images, knowledge_graph: graphId } = body;
  const graph = graphId ? await knowledge.graph(principal.organizationId, graphId) : null;
  if (graphId && graph === null) throw invalidBody(body, 'knowledge_graph', 'there is no such knowledge graph');
  return {
    name: body.name,
    description: body.description,
    imageUrl: images === null ? null : images?.image_url,
    bannerUrl: images === null ? null : images?.banner_url,
    features: body.features,
    personality: body.personality,
    isPersonal: body.personal,
    knowledgeGraph: graph === null ? (graphId as null | undefined) : { id: graph.id, name: graph.name },
    website: body.website,
    agentCapabilities: body.agent_capabilities,
    temperature: body.logic_model_temperature,
    usesDefaultTemperature: body.use_default_temperature,
    agentAddress: body.agent_address,
    agentHandle: body.agent_handle,
    voiceId: body.voice_id,
    pointOfInterest: body.point_of_interest,
    category: body.category,
    interestTags: body.interest_tags,
    metaData: body.meta_data,
    allowHtmlResponses: body.allow_html_responses,
    modelName: body.model_name,
    instructions: body.instructions,
    tools: body.tools,
  };
}
