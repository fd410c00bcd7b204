/* Agents as requests are answered: with what other streams and servers hold, and what the reader may see. */
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import type { Organizations } from '#libs/features/organizations/index.ts';
import type { Presentation } from '#libs/platform/entity/index.ts';

import { agentFields } from './agent.fields.ts';
import type { Agent } from './agent.ts';

export interface AgentReplyParts {
  readonly knowledge: Pick<Knowledge, 'graph'>;
  readonly organizations: Pick<Organizations, 'summary'>;
}

/** With the summary of their organization, the names that their graphs have now, and what the reader may see. */
export function withNames({ knowledge, organizations }: AgentReplyParts): Presentation<Agent> {
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
