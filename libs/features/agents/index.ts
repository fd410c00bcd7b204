/** Agents, which answer in the channels of their organization. One stream, `agent-<id>`, for each. */
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import type { OrganizationSummary } from '#libs/features/organizations/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { toolServers } from '#libs/platform/mcp/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { inboxEntity, Inboxes } from './agent.inbox.ts';
import { agentRoutes } from './agent.http.ts';
import { agentEntity, Agents } from './agent.read.ts';
import { AgentTools } from './agent.tools.ts';

export { agentEntity, Agents } from './agent.read.ts';
export { requireAgent } from './agent.http.ts';
export { endOf, inboxCodec, invocationFor } from './agent.inbox.ts';
export type { DeliveredInvocation, EndedInvocation, Inboxes } from './agent.inbox.ts';
export type { AgentTools, FoundServer, OfferedTool } from './agent.tools.ts';
export type { Agent, FeatureName } from './agent.ts';

interface AgentsDeps {
  readonly knowledge: Knowledge;
  readonly summarize: (organizationId: EntityId) => Promise<OrganizationSummary | null>;
}

export const agentsModule = {
  name: 'agents',
  projections: [agentEntity.projection, inboxEntity.projection],
  create(core: Core, { knowledge, summarize }: AgentsDeps) {
    const agents = new Agents(core);
    const inboxes = new Inboxes(core);
    const { fetcher } = core;
    const agentTools = new AgentTools({
      servers: toolServers(fetcher),
      tokenOf: (agent, sealedToken) => agents.tokenOf(agent, sealedToken),
    });
    const parts = { agents, agentTools, inboxes, knowledge, summarize, fetcher };
    return { agents, agentTools, inboxes, routes: (app: HttpApp) => agentRoutes(app, parts) };
  },
} satisfies Module;
