import type { FastifyRequest } from 'fastify';
import { z } from 'zod';

import { type HttpApp, notFound, requireEndpoint, routesTagged } from '#libs/platform/http/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';

import type { Agents } from './agent.read.ts';
import { agentParams, agentSchema, type UpdateAgentBody } from './agent.schemas.ts';
import type { AgentOfTools, AgentTools, FoundServer } from './agent.tools.ts';

/** A request that sets servers waits so long for what they have. */
const ANSWER_TIMEOUT_MS = 5_000;

const tool = z
  .object({
    name: z.string(),
    offered_as: z.string().describe('The name by which the model calls it'),
    description: z.string(),
    is_repeatable: z.boolean().describe('Whether Parley makes a call again whose outcome it does not know'),
  })
  .meta({ id: 'AgentTool' });

const toolServer = z
  .object({
    name: z.string(),
    url: z.string(),
    state: z.enum(['ready', 'failed', 'pending']).describe('`pending`: the server has not answered yet'),
    reason: z.string().nullable().describe('Why the server is not `ready`. Words of the server are in quotes'),
    tools: z.array(tool).describe('The tools that the agent has'),
    left_out: z
      .array(z.object({ name: z.string().nullable(), reason: z.string() }).meta({ id: 'LeftOutTool' }))
      .describe('Tools that the agent does not have; the name may be unknown'),
  })
  .meta({ id: 'AgentToolServer' });

const toolServers = z.array(toolServer);

/** An agent as a request that changes it is answered. */
export const changedAgentSchema = agentSchema
  .extend({
    tool_servers: toolServers.optional().describe('What was found at the `mcp_servers` that the request sets'),
  })
  .meta({ id: 'ChangedAgent' });

export function agentToolsRoute(
  app: HttpApp,
  {
    agents,
    agentTools,
  }: {
    readonly agents: Agents;
    readonly agentTools: Pick<AgentTools, 'of'>;
  },
): void {
  app.get(
    '/api/v1/agents/:id/tools',
    routesTagged('agents').reads({
      operationId: 'listAgentTools',
      summary: 'Ask the tool servers of an agent which tools it has, and which are left out',
      params: agentParams,
      response: { 200: z.object({ tool_servers: toolServers }).meta({ id: 'AgentTools' }) },
    }),
    async ({ principal: { organizationId }, params: { id }, signal }) => {
      const agent = await agents.find(organizationId, id);
      if (agent === null) throw notFound();
      return { tool_servers: (await agentTools.of(agent, { signal })).map(resource) };
    },
  );
}

/** The tools that are found now at the servers that a request has set; slow servers are `pending`. Never rejects. */
export async function foundNow(
  agent: AgentOfTools,
  agentTools: Pick<AgentTools, 'of'>,
): Promise<z.infer<typeof toolServers>> {
  const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  return Promise.all(
    agent.mcpServers.map(async (server) => {
      try {
        const [found] = await agentTools.of({ ...agent, mcpServers: [server] }, { signal, isFresh: true });
        if (found !== undefined) return resource(found);
      } catch {
        // Its list is still on the way, or could not be asked for.
      }
      const { name, url } = server;
      const reason = `the tool server has not answered within ${ANSWER_TIMEOUT_MS / 1_000} s`;
      return { name, url, state: 'pending' as const, reason, tools: [], left_out: [] };
    }),
  );
}

/** @throws ValidationFailure 422 for a URL that will never be fetched */
export function requireServerUrls(
  { body }: Pick<FastifyRequest, 'body'> & { readonly body: Pick<UpdateAgentBody, 'mcp_servers'> },
  fetcher: Pick<Fetcher, 'check'>,
): void {
  for (const [index, { url }] of (body.mcp_servers ?? []).entries()) {
    requireEndpoint(fetcher, url, ['body', 'mcp_servers', index, 'url']);
  }
}

function resource({ name, access, failure, tools, leftOut, unchosen }: FoundServer): z.infer<typeof toolServer> {
  const notChosen = 'the settings of the agent do not name it';
  return {
    name,
    url: access.url,
    state: failure === null ? 'ready' : 'failed',
    reason: failure,
    tools: tools.map((one) => ({
      name: one.name,
      offered_as: one.offeredAs,
      description: one.description,
      is_repeatable: one.isRepeatable,
    })),
    left_out: [...leftOut, ...unchosen.map((unused) => ({ name: unused, reason: notChosen }))],
  };
}
