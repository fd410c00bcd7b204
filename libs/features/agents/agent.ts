/*
 * Event names and shapes are the storage format: written events stay in the log forever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { isDeepStrictEqual } from 'node:util';

import { z } from 'zod';

import { accept, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `agent-<id>`. An agent belongs to one organization, permanently. */
export const AGENT = 'agent';

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

export const agentCategory = z.enum([
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
]);

const jsonMap = z.record(z.string(), z.unknown());

/** As the contract names its members, so that it is stored as it is answered. */
const pointOfInterest = z.object({
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
  metadata: jsonMap,
});

const fields = {
  name: z.string(),
  description: z.string(),
  imageUrl: z.string().nullable(),
  bannerUrl: z.string().nullable(),
  features: z.record(z.enum(FEATURES), z.boolean()),
  personality: z.string(),
  isPersonal: z.boolean(),
  /** With the name that the graph had when the agent got it. */
  knowledgeGraph: z.object({ id: z.string(), name: z.string() }).nullable(),
  website: z.string().nullable(),
  agentCapabilities: z.string().nullable(),
  /** Temperature of the model, for its answers. */
  temperature: z.number(),
  /** Whether the endpoint's default temperature is used instead. Absent in earlier events: false. */
  usesDefaultTemperature: z.boolean().optional(),
  agentAddress: z.string().nullable(),
  agentHandle: z.string().nullable(),
  voiceId: z.string(),
  pointOfInterest: pointOfInterest.nullable(),
  category: agentCategory.nullable(),
  interestTags: z.array(z.string()),
  metaData: jsonMap,
  allowHtmlResponses: z.boolean(),
  /** Name of a model at the model endpoint; null: its default. */
  modelName: z.string().nullable(),
  /** System instructions for the model, besides the personality. */
  instructions: z.string().nullable(),
  /** Names of the only tools that the agent may use; null: all that its features allow. */
  tools: z.array(z.string()).nullable(),
};

const mcpServer = z.object({
  /** Begins the names of its tools. */
  name: z.string(),
  url: z.string(),
  /** Names of the only tools that the agent may use; null: all. */
  tools: z.array(z.string()).nullable(),
  /** Bearer token, sealed: see `AgentSecrets`. Null: none. */
  sealedToken: z.string().nullable(),
});

/** `parley`: Parley answers with its model. `external`: the agent's team answers over the API. */
export const agentRuntime = z.enum(['parley', 'external']);

export const agentCodec = defineEvents({
  'AgentCreated.v1': z.object({ id: z.string(), ...fields }),
  /** The members that changed, each with its whole new value. */
  'AgentChanged.v1': z.object(fields).partial(),
  /** All servers whose tools the agent may use. */
  'AgentMcpServersSet.v1': z.object({ servers: z.array(mcpServer) }),
  'AgentRuntimeSet.v1': z.object({ runtime: agentRuntime }),
  /** `sealedSecret`: signs what is sent, see `AgentSecrets`. */
  'AgentWebhookSet.v1': z.object({
    webhook: z.object({ url: z.string(), sealedSecret: z.string() }).nullable(),
    /** The server of the former webhook has answered 410 (gone). */
    isGone: z.literal(true).optional(),
  }),
  'AgentDeactivated.v1': z.object({}),
  'AgentActivated.v1': z.object({}),
});

export type AgentEvent = EventOf<typeof agentCodec>;
export type AgentCreated = Extract<AgentEvent, { type: 'AgentCreated.v1' }>['data'];
export type AgentFields = Omit<AgentCreated, 'id'>;
export type PointOfInterest = z.infer<typeof pointOfInterest>;

export type McpServer = z.infer<typeof mcpServer>;

export type Agent = AgentCreated &
  EntityState & {
    readonly isActive: boolean;
    readonly mcpServers: readonly McpServer[];
    readonly runtime: z.infer<typeof agentRuntime>;
    readonly webhook: { readonly url: string; readonly sealedSecret: string } | null;
  };

/** `null` until the agent is created. */
export type AgentState = Agent | null;

/** An agent that has a name only. The voice and the temperature are those of section 2.4 of the contract. */
export const DEFAULTS: Omit<AgentFields, 'name'> = {
  description: '',
  imageUrl: null,
  bannerUrl: null,
  features: Object.fromEntries(FEATURES.map((name) => [name, false])) as AgentFields['features'],
  personality: '',
  isPersonal: false,
  knowledgeGraph: null,
  website: null,
  agentCapabilities: null,
  temperature: 0.1,
  usesDefaultTemperature: false,
  agentAddress: null,
  agentHandle: null,
  voiceId: 'jqcCZkN6Knx8BJ5TBdYR',
  pointOfInterest: null,
  category: null,
  interestTags: [],
  metaData: {},
  allowHtmlResponses: false,
  modelName: null,
  instructions: null,
  tools: null,
};

export const agentFold: Fold<AgentState, AgentEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'AgentCreated.v1') {
      return { ...event.data, ...createdBy(event), isActive: true, mcpServers: [], runtime: 'parley', webhook: null };
    }
    if (state === null) return state;
    const changed = { ...state, ...changedBy(event) };
    switch (event.type) {
      case 'AgentChanged.v1':
        // JSON has no undefined members.
        return { ...changed, ...(event.data as Partial<AgentFields>) };
      case 'AgentMcpServersSet.v1':
        return { ...changed, mcpServers: event.data.servers };
      case 'AgentRuntimeSet.v1':
        return { ...changed, runtime: event.data.runtime };
      case 'AgentWebhookSet.v1':
        return { ...changed, webhook: event.data.webhook };
      case 'AgentDeactivated.v1':
        return { ...changed, isActive: false };
      case 'AgentActivated.v1':
        return { ...changed, isActive: true };
    }
  },
};

/** Fields to set; absent ones stay as they are, `null` gives a field its default. Features are set one by one. */
export type AgentChanges = {
  readonly [Name in keyof AgentFields]?:
    (Name extends 'features' ? FeatureChanges : AgentFields[Name]) | (Name extends 'name' ? never : null) | undefined;
};
export type FeatureChanges = { readonly [Name in FeatureName]?: boolean | undefined };

/** A new agent: {@link DEFAULTS} with the given fields. */
export function newAgent(id: EntityId, given: AgentChanges & { readonly name: string }): AgentCreated {
  const blank = { ...DEFAULTS, name: given.name };
  return { id, ...blank, ...changedFields(blank, given) };
}

export function decideUpdate(
  agent: Agent,
  changes: AgentChanges,
  settings: AgentSettings = {},
): Decision<AgentEvent, never> {
  const data = changedFields(agent, changes);
  return accept(
    ...(Object.keys(data).length === 0 ? [] : [{ type: 'AgentChanged.v1', data } as const]),
    ...settingsSet(agent, settings),
  );
}

/** A server as a request names it. `sealedToken`: undefined keeps the token. */
export type GivenMcpServer = Omit<McpServer, 'sealedToken'> & { readonly sealedToken: string | null | undefined };

/** What a request sets besides the fields. */
export interface AgentSettings {
  readonly servers?: readonly GivenMcpServer[] | undefined;
  readonly runtime?: Agent['runtime'] | undefined;
}

export function settingsSet(
  before: Pick<Agent, 'mcpServers' | 'runtime'>,
  { servers, runtime = before.runtime }: AgentSettings,
): readonly AgentEvent[] {
  const isSame = runtime === before.runtime;
  return [
    ...mcpServersSet(before.mcpServers, servers),
    ...(isSame ? [] : [{ type: 'AgentRuntimeSet.v1', data: { runtime } } as const]),
  ];
}

/** The token is kept only for the URL that it was given for: a request cannot send it elsewhere. */
function mcpServersSet(
  before: readonly McpServer[],
  given: readonly GivenMcpServer[] | undefined,
): readonly AgentEvent[] {
  if (given === undefined) return [];
  const servers = given.map(({ sealedToken, ...server }) => {
    const kept = before.find(({ name, url }) => name === server.name && url === server.url);
    return { ...server, sealedToken: sealedToken === undefined ? (kept?.sealedToken ?? null) : sealedToken };
  });
  return isDeepStrictEqual(servers, before) ? [] : [{ type: 'AgentMcpServersSet.v1', data: { servers } }];
}

function changedFields(before: AgentFields, changes: AgentChanges): Partial<AgentFields> {
  const changed = Object.entries(changes).flatMap(([key, value]) => {
    if (value === undefined) return [];
    const name = key as keyof typeof DEFAULTS;
    const given = name === 'features' ? { ...before.features, ...(value as FeatureChanges | null) } : value;
    const after = value === null ? DEFAULTS[name] : given;
    return isDeepStrictEqual(after, before[name]) ? [] : [[name, after]];
  });
  return Object.fromEntries(changed) as Partial<AgentFields>;
}

/** Once, and not for a webhook that was set since. */
export function decideDisableWebhook({ webhook }: Agent, sealedSecret: string): Decision<AgentEvent, never> {
  if (webhook?.sealedSecret !== sealedSecret) return accept();
  return accept({ type: 'AgentWebhookSet.v1', data: { webhook: null, isGone: true } });
}

export function decideDeactivate({ isActive }: Agent): Decision<AgentEvent, never> {
  return isActive ? accept({ type: 'AgentDeactivated.v1', data: {} }) : accept();
}

export function decideActivate({ isActive }: Agent): Decision<AgentEvent, never> {
  return isActive ? accept() : accept({ type: 'AgentActivated.v1', data: {} });
}
