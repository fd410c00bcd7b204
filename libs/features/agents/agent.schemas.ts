/* The HTTP schemas of agents (contract, section 4.3), besides their members. */
import { z } from 'zod';

import { httpUrl, idParam, idReference, queryBoolean, text } from '#libs/platform/http/index.ts';

import { agentCategory, agentFields, agentRuntime } from './agent.fields.ts';

export const agentSchema = z.object(agentFields.output).meta({ id: 'Agent' });

const MAX_MCP_SERVERS = 8;

const mcpServerInput = z
  .object({
    name: text({
      min: 1,
      max: 24,
      pattern: /^[a-z0-9]+(-[a-z0-9]+)*$/,
      description: 'Begins the names of its tools. Lower-case letters, digits and single dashes',
    }),
    url: httpUrl().describe(
      'Its endpoint for streamable HTTP. Everybody who may read the agent sees it: put a secret into `token`',
    ),
    tools: z
      .array(text({ min: 1, max: 256 }))
      .max(100)
      .nullish()
      .describe(
        'The only tools of the server that the agent may use, by the names that the server has for them. Default: all',
      ),
    token: text({ min: 1, max: 4_096, pattern: /^[\x21-\x7e]+$/ })
      .nullish()
      .describe('Bearer token. Write-only: absent, it stays as long as the name and the URL do; null removes it'),
  })
  .meta({ id: 'McpServerAdd' });

const settings = {
  runtime: agentRuntime
    .nullish()
    .describe('What answers for the agent: `parley` (default), or, with `external`, its team over the API'),
  mcp_servers: z
    .array(mcpServerInput)
    .max(MAX_MCP_SERVERS)
    .refine(
      (servers) => new Set(servers.map((one) => one.name)).size === servers.length,
      'two servers have the same name',
    )
    .nullish()
    .describe('Servers whose tools the agent may use, by the Model Context Protocol. Replaces all of them'),
};

export const createAgentBody = z.object({ ...agentFields.input, ...settings }).meta({
  id: 'AgentCreate',
  examples: [{ name: 'Guide', description: 'Answers questions about orders', instructions: 'Answer in one sentence.' }],
});
/** Absent fields stay as they are. */
export const updateAgentBody = z
  .object({ ...agentFields.input, name: agentFields.input.name.optional(), ...settings })
  .meta({ id: 'AgentUpdate', examples: [{ instructions: 'Answer in two sentences.' }] });
export type UpdateAgentBody = z.output<typeof updateAgentBody>;

export const agentParams = z.object({ id: idParam('Id of the agent') });

export const agentFilters = {
  name: text({ max: 256, description: 'Only agents of exactly this name' }).optional(),
  category: agentCategory.optional(),
  is_active: queryBoolean({ description: 'Only active agents, or only deactivated ones' }).optional(),
  personal: queryBoolean({ default: false, description: 'Lists personal agents instead of the others' }),
  knowledge_graph: idReference({ description: 'Only agents with this graph' }).optional(),
};
