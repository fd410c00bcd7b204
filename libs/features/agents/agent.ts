/*
 * Event names and shapes are the storage format: written events stay in the log forever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { isDeepStrictEqual } from 'node:util';

import { z } from 'zod';

import { accept, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy } from '#libs/kernel/entity.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

import {
  agentFields,
  type AgentOwnState,
  agentRuntime,
  type FeatureName,
  type McpServer,
  mcpServer,
} from './agent.fields.ts';

/** Category of the streams, `agent-<id>`. An agent belongs to one organization, permanently. */
export const AGENT = 'agent';

export const agentCodec = defineEvents({
  'AgentCreated.v1': z.object({ id: z.string(), ...agentFields.stored }),
  /** The members that changed, each with its whole new value. */
  'AgentChanged.v1': z.object(agentFields.stored).partial(),
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
type AgentFields = Omit<AgentCreated, 'id'>;

export type Agent = AgentCreated & AgentOwnState;

/** `null` until the agent is created. */
export type AgentState = Agent | null;

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
type FeatureChanges = { readonly [Name in FeatureName]?: boolean | undefined };

/** A new agent: the defaults with the given fields. */
export function newAgent(id: EntityId, given: AgentChanges & { readonly name: string }): AgentCreated {
  const blank = { ...agentFields.defaults, name: given.name };
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

/** Members that a request sets besides the fields. */
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
    const name = key as keyof AgentFields;
    const given = name === 'features' ? { ...before.features, ...(value as FeatureChanges | null) } : value;
    const after = value === null ? agentFields.defaults[name] : given;
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
