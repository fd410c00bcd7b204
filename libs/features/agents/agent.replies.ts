/* Agents as requests are answered: with what other streams and servers hold, and what the reader may see. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';

import type { Knowledge } from '#libs/features/knowledge/index.ts';
import type { Organizations } from '#libs/features/organizations/index.ts';
import { faultAfterWrite } from '#libs/kernel/faults.ts';
import { EntityReplies, type EntityResult, type NotFound } from '#libs/platform/entity/index.ts';

import { agentEntity, type Agents } from './agent.read.ts';
import type { AgentResource, UpdateAgentBody } from './agent.schemas.ts';
import { type changedAgentSchema, foundNow } from './agent.tools.http.ts';
import type { AgentTools } from './agent.tools.ts';
import type { Agent } from './agent.ts';

export interface AgentReplyParts {
  readonly agents: Agents;
  readonly agentTools: Pick<AgentTools, 'of'>;
  readonly knowledge: Pick<Knowledge, 'graph'>;
  readonly organizations: Pick<Organizations, 'summary'>;
}

/** @throws Fault `outcome_unknown` where a name cannot be read: the agent has changed; the error of the rejection */
export async function sendAgent(
  request: FastifyRequest,
  reply: FastifyReply,
  result: EntityResult<Agent, NotFound>,
  parts: AgentReplyParts,
): Promise<AgentResource> {
  const agent = new EntityReplies(parts.agents, {}).accepted(request, reply, result);
  try {
    return await withName(agentEntity.resource(agent) as AgentResource, request.principal, parts);
  } catch (error) {
    throw faultAfterWrite(error);
  }
}

/** With what is found at the servers that the request sets. */
export async function withTools(
  shown: AgentResource,
  result: EntityResult<Agent, NotFound>,
  { mcp_servers: given }: Pick<UpdateAgentBody, 'mcp_servers'>,
  { agentTools }: Pick<AgentReplyParts, 'agentTools'>,
): Promise<z.infer<typeof changedAgentSchema>> {
  return given && result.ok ? { ...shown, tool_servers: await foundNow(result.entity, agentTools) } : shown;
}

export async function withName(
  agent: AgentResource,
  reader: FastifyRequest['principal'],
  parts: AgentReplyParts,
): Promise<AgentResource> {
  const [named] = await withNames([agent], reader, parts);
  return named ?? agent;
}

/** Agents with the summary of their organization, the names that their graphs have now, and what the reader may see. */
export async function withNames(
  agents: readonly AgentResource[],
  { organizationId, scopes }: FastifyRequest['principal'],
  { knowledge, organizations }: AgentReplyParts,
): Promise<AgentResource[]> {
  const organization = agents.length === 0 ? null : await organizations.summary(organizationId);
  return Promise.all(
    agents.map(async (agent) => {
      const graph = agent.knowledge_graph && (await knowledge.graph(organizationId, agent.knowledge_graph.id));
      const webhook_url = scopes.has('admin') ? agent.webhook_url : null;
      return { ...agent, webhook_url, organization, knowledge_graph: graph && { id: graph.id, name: graph.name } };
    }),
  );
}
