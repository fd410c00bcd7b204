/*
 * The HTTP schemas of agents: the contract's sections 2.4 and 4.3, field by field.
 */
import { z } from 'zod';

import { organizationSummary } from '#libs/features/channels/index.ts';
import {
  httpUrl,
  idParam,
  idReference,
  jsonMap,
  pageMetaSchema,
  pageQuery,
  queryBoolean,
  text,
} from '#libs/platform/http/index.ts';

import { agentCategory, agentRuntime, DEFAULTS, type FeatureName, FEATURES } from './agent.ts';

const features = z
  .object(Object.fromEntries(FEATURES.map((name) => [name, z.boolean()])) as Record<FeatureName, z.ZodBoolean>)
  .meta({ id: 'AgentFeatures' });

const point = z
  .object({ type: z.string().default('Point'), coordinates: z.array(z.number()).nullable() })
  .meta({ id: 'Point', description: 'GeoJSON point: longitude, latitude and optionally altitude' });

const pointOfInterest = z
  .object({
    id: z.string().optional(),
    name: z.string(),
    display_name: z.string(),
    description: z.string().default(''),
    provider_type: z.string(),
    external_id: z.string().nullable(),
    location: point.nullable(),
    street: z.string(),
    city: z.string(),
    state: z.string(),
    postal_code: z.string(),
    country: z.string(),
    url: z.string().default(''),
    image_url: z.string().default(''),
    metadata: z.record(z.string(), z.unknown()).default({}),
  })
  .meta({ id: 'PointOfInterest' });

const mcpServer = z
  .object({
    name: z.string(),
    url: z.string(),
    tools: z.array(z.string()).nullable(),
    has_token: z.boolean().describe('The token itself is never answered'),
  })
  .meta({ id: 'McpServer' });

export const agentSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string(),
    organization: organizationSummary.nullable().describe('Null in frames'),
    images: z.object({ image_url: z.string().nullable(), banner_url: z.string().nullable() }),
    features,
    personality: z.string().default(DEFAULTS.personality),
    personal: z
      .boolean()
      .nullable()
      .default(DEFAULTS.isPersonal)
      .describe('Lists omit the agent unless they ask for personal ones'),
    knowledge_graph: z
      .object({ id: z.string(), name: z.string() })
      .nullable()
      .describe('Null also after the graph was deleted'),
    website: z.string().nullable(),
    agent_capabilities: z.string().nullable(),
    logic_model_temperature: z.number().default(DEFAULTS.temperature),
    use_default_temperature: z.boolean(),
    agent_address: z.string().nullable(),
    agent_handle: z.string().nullable(),
    voice_id: z.string().default(DEFAULTS.voiceId),
    point_of_interest: pointOfInterest.nullable(),
    category: agentCategory.nullable(),
    interest_tags: z.array(z.string()).default([]),
    meta_data: z.record(z.string(), z.unknown()).default({}),
    is_active: z.boolean().describe('A deactivated agent joins no channels and answers nothing'),
    allow_html_responses: z.boolean(),
    model_name: z.string().nullable(),
    instructions: z.string().nullable(),
    tools: z.array(z.string()).nullable(),
    mcp_servers: z.array(mcpServer),
    runtime: agentRuntime,
    webhook_url: z
      .string()
      .nullable()
      .describe('Shown to keys with the scope `admin`, as it may hold a token; null for all others, and in frames'),
    created: z.string(),
    modified: z.string(),
  })
  .meta({ id: 'Agent' });
export type AgentResource = z.infer<typeof agentSchema>;

export const agentPageSchema = z
  .object({ items: z.array(agentSchema), meta: pageMetaSchema })
  .meta({ id: 'AgentPage' });

const line = text({ max: 256 });
const paragraph = text({ max: 4_096 });
const urlOrEmpty = text({ max: 2_083, pattern: /^(https?:\/\/\S+)?$/i });

const pointOfInterestInput = z
  .object({
    id: line.optional(),
    name: line,
    display_name: line,
    description: paragraph.default(''),
    provider_type: line,
    external_id: line.nullable().default(null),
    location: z
      .object({
        type: text({ max: 32 }).default('Point'),
        coordinates: z.array(z.number()).max(3).nullable().default(null),
      })
      .nullable()
      .default(null),
    street: line,
    city: line,
    state: line,
    postal_code: line,
    country: line,
    url: urlOrEmpty.default(''),
    image_url: urlOrEmpty.default(''),
    metadata: jsonMap().default({}),
  })
  .meta({ id: 'NewPointOfInterest' });

const featuresInput = z
  .object(
    Object.fromEntries(FEATURES.map((name) => [name, z.boolean().optional()])) as Record<
      FeatureName,
      z.ZodOptional<z.ZodBoolean>
    >,
  )
  .meta({ id: 'AgentFeatureChanges', description: 'Absent ones stay as they are; of a new agent, they are false' });

const name = text({ min: 1, max: 256, pattern: /\S/u, description: 'Name of the agent' });

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
  .meta({ id: 'NewMcpServer' });
export type NewMcpServer = z.output<typeof mcpServerInput>;

/** Null stands for the default, also where the contract shows no null: a PATCH can clear everything but the name. */
const inputs = {
  description: paragraph.nullish(),
  images: z.object({ image_url: httpUrl().nullish(), banner_url: httpUrl().nullish() }).nullish(),
  features: featuresInput.nullish(),
  personality: paragraph.nullish(),
  personal: z.boolean().nullish(),
  knowledge_graph: idReference({ description: 'A graph of the organization' }).nullish(),
  website: httpUrl().nullish(),
  agent_capabilities: paragraph.nullish(),
  logic_model_temperature: z.number().min(0).max(2).nullish().describe(`Default: ${DEFAULTS.temperature}`),
  use_default_temperature: z
    .boolean()
    .nullish()
    .describe("Whether the model endpoint's own default is used, and `logic_model_temperature` is not sent"),
  agent_address: line.nullish(),
  agent_handle: line.nullish(),
  voice_id: text({ min: 1, max: 256, description: `Default: \`${DEFAULTS.voiceId}\`` }).nullish(),
  point_of_interest: pointOfInterestInput.nullish(),
  category: agentCategory.nullish(),
  interest_tags: z.array(line).max(100).nullish(),
  meta_data: jsonMap().nullish(),
  allow_html_responses: z
    .boolean()
    .nullish()
    .describe('Whether clients may render the HTML of its answers; otherwise they escape it'),
  model_name: text({
    min: 1,
    max: 256,
    description: 'Model at the model endpoint; default: the configured one',
  }).nullish(),
  instructions: text({ max: 32_768, description: 'System instructions for the model' }).nullish(),
  tools: z
    .array(text({ min: 1, max: 256 }))
    .max(100)
    .nullish()
    .describe('The only tools that the agent may use; default: all that its features allow'),
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

export const createAgentBody = z.object({ name, ...inputs }).meta({ id: 'AgentCreate' });
/** Absent fields stay as they are. */
export const updateAgentBody = z.object({ name: name.optional(), ...inputs }).meta({ id: 'AgentUpdate' });
export type UpdateAgentBody = z.output<typeof updateAgentBody>;

export const agentParams = z.object({ id: idParam('Id of the agent') });

export const listAgentsQuery = z.object({
  ...pageQuery,
  name: text({ max: 256, description: 'Only agents of exactly this name' }).optional(),
  category: agentCategory.optional(),
  is_active: queryBoolean({ description: 'Only active agents, or only deactivated ones' }).optional(),
  personal: queryBoolean({ default: false, description: 'Lists personal agents instead of the others' }),
  knowledge_graph: idReference({ description: 'Only agents with this graph' }).optional(),
});
