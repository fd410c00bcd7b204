import type { FastifyRequest } from 'fastify';
import { z } from 'zod';

import type { Knowledge } from '#libs/features/knowledge/index.ts';
import type { Organizations } from '#libs/features/organizations/index.ts';
import { accept } from '#libs/kernel/decider.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import {
  declareReads,
  digestFacet,
  EntityReplies,
  type EntityResult,
  type NotFound,
  type Presentation,
} from '#libs/platform/entity/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';
import {
  commandContext,
  eventStreamQuery,
  eventStreamResponse,
  type HttpApp,
  invalidBody,
  notFound,
  routesTagged,
} from '#libs/platform/http/index.ts';

import { agentFields } from './agent.fields.ts';
import type { Inboxes } from './agent.inbox.ts';
import { type AgentFacets, type Agents } from './agent.read.ts';
import { agentToolsRoute, changedAgentSchema, foundNow, requireServerUrls } from './agent.tools.http.ts';
import { webhookRoute } from './agent.webhook.http.ts';
import {
  agentFilters,
  agentParams,
  agentSchema,
  createAgentBody,
  updateAgentBody,
  type UpdateAgentBody,
} from './agent.schemas.ts';
import type { AgentTools } from './agent.tools.ts';
import {
  type Agent,
  type AgentChanges,
  type AgentEvent,
  type AgentSettings,
  type AgentState,
  decideActivate,
  decideDeactivate,
  decideUpdate,
  type GivenMcpServer,
  newAgent,
  settingsSet,
} from './agent.ts';

interface AgentRouteParts {
  readonly knowledge: Pick<Knowledge, 'graph'>;
  readonly organizations: Pick<Organizations, 'summary'>;
  readonly agents: Agents;
  readonly agentTools: Pick<AgentTools, 'of'>;
  readonly inboxes: Inboxes;
  readonly fetcher: Pick<Fetcher, 'check'>;
}

type Replies = EntityReplies<AgentState, AgentEvent, AgentFacets>;

const { requiring, writes } = routesTagged('agents');
const params = agentParams;
const response = { 200: agentSchema };
const changed = { 200: changedAgentSchema };

export function agentRoutes(app: HttpApp, parts: AgentRouteParts): void {
  const replies = new EntityReplies(parts.agents, {}, withNames(parts));
  readRoutes(app, replies, parts);
  createRoute(app, replies, parts);
  changeRoutes(app, replies, parts);
  agentToolsRoute(app, parts);
  webhookRoute(app, parts);
}

/** With the summary of their organization, the names that their graphs have now, and what the reader may see. */
function withNames({ knowledge, organizations }: AgentRouteParts): Presentation<Agent> {
  return {
    async of(agents, { principal: { organizationId, scopes } }) {
      const organization = agents.length === 0 ? null : await organizations.summary(organizationId);
      return Promise.all(
        agents.map(async (agent) => {
          const { knowledgeGraph, webhook } = agent;
          const graph = knowledgeGraph && (await knowledge.graph(organizationId, knowledgeGraph.id));
          return {
            ...agentFields.resource(agent),
            organization,
            knowledge_graph: graph && { id: graph.id, name: graph.name },
            webhook_url: scopes.has('admin') ? (webhook?.url ?? null) : null,
          };
        }),
      );
    },
  };
}

function readRoutes(app: HttpApp, replies: Replies, { inboxes }: AgentRouteParts): void {
  declareReads(app, replies, {
    path: '/api/v1/agents',
    tag: 'agents',
    params,
    schema: agentSchema,
    list: {
      operationId: 'listAgents',
      summary: 'List agents, newest first; without personal ones, unless they are asked for',
      filters: agentFilters,
      facets: ({ name, category, is_active, personal, knowledge_graph }) => ({
        name: name && digestFacet(name),
        category,
        is_active,
        personal,
        knowledge_graph,
      }),
    },
    one: { operationId: 'getAgent', summary: 'Read an agent' },
    events: { operationId: 'streamAgentEvents', summary: 'Follow the changes of an agent' },
  });

  const inboxReplies = new EntityReplies(inboxes, {});
  app.get(
    '/api/v1/agents/:id/invocations/events',
    requiring('agent')({
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

/** A key acts for the agent that has the id of the key's service. @throws HttpError 404 for other agents */
export function requireAgent({ principalType, principalId }: FastifyRequest['principal'], agentId: EntityId): void {
  if (principalType !== 'service' || principalId !== agentId) throw notFound();
}

function createRoute(app: HttpApp, replies: Replies, parts: AgentRouteParts): void {
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
      return withTools(await replies.shown(request, reply, result), result, request.body, parts);
    },
  );
}

function changeRoutes(app: HttpApp, replies: Replies, parts: AgentRouteParts): void {
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
      return withTools(await replies.shown(request, reply, result), result, request.body, parts);
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
      return replies.sendUpdated(request, reply, decideDeactivate);
    },
  );

  app.post(
    '/api/v1/agents/:id/activate',
    writes({ operationId: 'activateAgent', summary: 'Activate a deactivated agent', params, response }),
    async (request, reply) => {
      return replies.sendUpdated(request, reply, decideActivate);
    },
  );
}

/** Opens the inbox of an external agent first, so that there always is one. */
async function settingsOf(
  context: CommandContext,
  id: EntityId,
  body: Pick<UpdateAgentBody, 'mcp_servers' | 'runtime'>,
  { agents, inboxes }: AgentRouteParts,
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
  { knowledge }: AgentRouteParts,
): Promise<AgentChanges> {
  const { knowledge_graph: graphId } = body;
  const graph = graphId ? await knowledge.graph(principal.organizationId, graphId) : null;
  if (graphId && graph === null) throw invalidBody(body, 'knowledge_graph', 'there is no such knowledge graph');
  return {
    ...agentFields.changes(body),
    features: body.features,
    knowledgeGraph: graph === null ? (graphId as null | undefined) : { id: graph.id, name: graph.name },
  } as AgentChanges;
}

/** With what is found at the servers that the request sets. */
async function withTools(
  shown: object,
  result: EntityResult<Agent, NotFound>,
  { mcp_servers: given }: Pick<UpdateAgentBody, 'mcp_servers'>,
  { agentTools }: AgentRouteParts,
): Promise<object> {
  return given && result.ok ? { ...shown, tool_servers: await foundNow(result.entity, agentTools) } : shown;
}
