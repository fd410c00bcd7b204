/*
 * The members of agents: the contract's section 2.4, each once. What is `stored` is the storage format of events: a new
 * member is optional there, and none ever changes. See docs/adding-a-feature.md.
 */
import { z } from 'zod';

import type { EntityState } from '#libs/kernel/entity.ts';
import { field, fields, group, namedField, shown } from '#libs/kernel/fields.ts';
import { httpUrl, idReference, jsonMap, text, shownTime } from '#libs/platform/http/index.ts';
import { organizationSummary } from '#libs/features/organizations/index.ts';

/** The switches of section 2.4 of the contract. */
export const FEATURES = [
  'discover_activity',
  'location_learning',
  'enable_proactive_message',
  'general_web_search',
  'general_agent_search',
  'planner_mode',
  'enable_media_capability',
  'messenger_a',
  'messenger_b',
  'calendar_enabled',
  'messenger_c',
  'sms',
  'alliance',
  'app_five',
  'widget_enabled',
] as const;

export type FeatureName = (typeof FEATURES)[number];

export const agentCategory = z
  .enum([
    'business_owner',
    'co_founder',
    'marketing',
    'sales',
    'operations',
    'research',
    'freelancer',
    'influencers',
    'gig_economy',
    'companies',
    'brands',
    'community_leader',
    'developer',
    'education',
    'personal',
    'alliance',
    'solo_preneur',
    'content_creator',
    'consultant',
    'tech_startup',
    'agent_creator',
  ])
  .meta({ id: 'AgentCategory' });

const features = z
  .object(Object.fromEntries(FEATURES.map((name) => [name, z.boolean()])) as Record<FeatureName, z.ZodBoolean>)
  .meta({ id: 'AgentFeatures' });

const featuresInput = features
  .partial()
  .meta({ id: 'AgentFeatureChanges', description: 'Absent ones stay as they are; of a new agent, they are false' });

const line = text({ max: 256 });
const paragraph = text({ max: 4_096 });
const urlOrEmpty = text({ max: 2_083, pattern: /^(https?:\/\/\S+)?$/i });

/** As the contract names its members, so that it is stored as it is answered. */
const storedPointOfInterest = z.object({
  id: z.string().optional(),
  name: z.string(),
  display_name: z.string(),
  description: z.string(),
  provider_type: z.string(),
  external_id: z.string().nullable(),
  location: z.object({ type: z.string(), coordinates: z.array(z.number()).nullable() }).nullable(),
  street: z.string(),
  city: z.string(),
  state: z.string(),
  postal_code: z.string(),
  country: z.string(),
  url: z.string(),
  image_url: z.string(),
  metadata: z.record(z.string(), z.unknown()),
});

const point = z
  .object({ type: z.string().default('Point'), coordinates: z.array(z.number()).nullable() })
  .meta({ id: 'Point', description: 'GeoJSON point: longitude, latitude and optionally altitude' });

const pointOfInterest = storedPointOfInterest
  .extend({
    description: z.string().default(''),
    location: point.nullable(),
    url: z.string().default(''),
    image_url: z.string().default(''),
    metadata: z.record(z.string(), z.unknown()).default({}),
  })
  .meta({ id: 'PointOfInterest' });

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
  .meta({ id: 'PointOfInterestAdd' });

const graphName = z.object({ id: z.string(), name: z.string() });

export const mcpServer = z.object({
  /** Begins the names of its tools. */
  name: z.string(),
  url: z.string(),
  /** Names of the only tools that the agent may use; null: all. */
  tools: z.array(z.string()).nullable(),
  /** Bearer token, sealed: see `AgentSecrets`. Null: none. */
  sealedToken: z.string().nullable(),
});

export type McpServer = z.infer<typeof mcpServer>;

const shownMcpServer = z
  .object({
    name: z.string(),
    url: z.string(),
    tools: z.array(z.string()).nullable(),
    has_token: z.boolean().describe('The token itself is never answered'),
  })
  .meta({ id: 'McpServer' });

/** `parley`: Parley answers with its model. `external`: the agent's team answers over the API. */
export const agentRuntime = z.enum(['parley', 'external']).meta({ id: 'AgentRuntime' });

/** Members of the state besides the fields. */
export type AgentOwnState = EntityState & {
  readonly isActive: boolean;
  readonly mcpServers: readonly McpServer[];
  readonly runtime: z.infer<typeof agentRuntime>;
  readonly webhook: { readonly url: string; readonly sealedSecret: string } | null;
};

const nullableText = z.string().nullable();
const map = z.record(z.string(), z.unknown());
const NO_FEATURES = Object.fromEntries(FEATURES.map((name) => [name, false])) as Record<FeatureName, boolean>;
/** The features of section 2.4 of the contract. */
const [TEMPERATURE, VOICE] = [0.1, 'jqcCZkN6Knx8BJ5TBdYR'];

/** Null stands for the default, also where the contract shows no null: a PATCH can clear everything but the name. */
export const agentFields = fields({
  id: shown(z.string(), ({ id }: AgentOwnState) => id),
  name: field('name', z.string(), {
    input: text({ min: 1, max: 256, pattern: /\S/u, description: 'Name of the agent' }),
  }),
  description: field('description', z.string(), { byDefault: '', input: paragraph.nullish() }),
  // Replies add what other streams hold.
  organization: shown(organizationSummary.nullable().describe('Null in frames'), (_agent: AgentOwnState) => null),
  images: group({
    image_url: field('imageUrl', nullableText, { byDefault: null, input: httpUrl().nullish() }),
    banner_url: field('bannerUrl', nullableText, { byDefault: null, input: httpUrl().nullish() }),
  }),
  // Requests set features one by one.
  features: namedField('features', z.record(z.enum(FEATURES), z.boolean()), {
    byDefault: NO_FEATURES,
    output: features,
    input: featuresInput.nullish(),
  }),
  personality: field('personality', z.string(), {
    byDefault: '',
    output: z.string().default(''),
    input: paragraph.nullish(),
  }),
  personal: field('isPersonal', z.boolean(), {
    byDefault: false,
    output: z.boolean().nullable().default(false).describe('Lists omit the agent unless they ask for personal ones'),
    input: z.boolean().nullish(),
  }),
  // With the name that the graph had when the agent got it. Requests name its id.
  knowledge_graph: namedField('knowledgeGraph', graphName.nullable(), {
    byDefault: null,
    output: graphName.nullable().describe('Null also after the graph was deleted'),
    input: idReference({ description: 'A graph of the organization' }).nullish(),
  }),
  website: field('website', nullableText, { byDefault: null, input: httpUrl().nullish() }),
  agent_capabilities: field('agentCapabilities', nullableText, { byDefault: null, input: paragraph.nullish() }),
  logic_model_temperature: field('temperature', z.number(), {
    byDefault: TEMPERATURE,
    output: z.number().default(TEMPERATURE),
    input: z.number().min(0).max(2).nullish().describe(`Default: ${TEMPERATURE}`),
  }),
  // Absent in earlier events.
  use_default_temperature: field('usesDefaultTemperature', z.boolean().optional(), {
    byDefault: false,
    output: z.boolean(),
    input: z
      .boolean()
      .nullish()
      .describe("Whether the model endpoint's own default is used, and `logic_model_temperature` is not sent"),
  }),
  agent_address: field('agentAddress', nullableText, { byDefault: null, input: line.nullish() }),
  agent_handle: field('agentHandle', nullableText, { byDefault: null, input: line.nullish() }),
  voice_id: field('voiceId', z.string(), {
    byDefault: VOICE,
    output: z.string().default(VOICE),
    input: text({ min: 1, max: 256, description: `Default: \`${VOICE}\`` }).nullish(),
  }),
  point_of_interest: field('pointOfInterest', storedPointOfInterest.nullable(), {
    byDefault: null,
    output: pointOfInterest.nullable(),
    input: pointOfInterestInput.nullish(),
  }),
  category: field('category', agentCategory.nullable(), { byDefault: null, input: agentCategory.nullish() }),
  interest_tags: field('interestTags', z.array(z.string()), {
    byDefault: [],
    output: z.array(z.string()).default([]),
    input: z.array(line).max(100).nullish(),
  }),
  meta_data: field('metaData', map, { byDefault: {}, output: map.default({}), input: jsonMap().nullish() }),
  is_active: shown(
    z.boolean().describe('A deactivated agent joins no channels and answers nothing'),
    ({ isActive }: AgentOwnState) => isActive,
  ),
  allow_html_responses: field('allowHtmlResponses', z.boolean(), {
    byDefault: false,
    input: z
      .boolean()
      .nullish()
      .describe('Whether clients may render the HTML of its answers; otherwise they escape it'),
  }),
  model_name: field('modelName', nullableText, {
    byDefault: null,
    input: text({
      min: 1,
      max: 256,
      description: 'Model at the model endpoint; default: the configured one',
    }).nullish(),
  }),
  // Besides the personality.
  instructions: field('instructions', nullableText, {
    byDefault: null,
    input: text({ max: 32_768, description: 'System instructions for the model' }).nullish(),
  }),
  tools: field('tools', z.array(z.string()).nullable(), {
    byDefault: null,
    input: z
      .array(text({ min: 1, max: 256 }))
      .max(100)
      .nullish()
      .describe('The only tools that the agent may use; default: all that its features allow'),
  }),
  mcp_servers: shown(z.array(shownMcpServer), ({ mcpServers }: AgentOwnState) =>
    mcpServers.map(({ sealedToken, ...server }) => ({ ...server, has_token: sealedToken !== null })),
  ),
  runtime: shown(agentRuntime, ({ runtime }: AgentOwnState) => runtime),
  webhook_url: shown(
    nullableText.describe(
      'Shown to keys with the scope `admin`, as it may hold a token; null for all others, and in frames',
    ),
    ({ webhook }: AgentOwnState) => webhook?.url ?? null,
  ),
  created: shown(shownTime(), ({ createdAt }: AgentOwnState) => createdAt),
  modified: shown(shownTime(), ({ modified }: AgentOwnState) => modified),
});
