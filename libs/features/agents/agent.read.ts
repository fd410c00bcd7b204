import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { withinMemory } from '#libs/platform/config/index.ts';
import { digestFacet, Entities, entity, type EntityCore } from '#libs/platform/entity/index.ts';
import { SharedCalls } from '#libs/platform/lifecycle/index.ts';
import { emptyTip, foldTail, type Tip, TipCache } from '#libs/platform/streams/index.ts';

import { agentFields } from './agent.fields.ts';
import {
  AGENT,
  type Agent,
  agentCodec,
  type AgentEvent,
  agentFold,
  type AgentState,
  decideDisableWebhook,
} from './agent.ts';

export type AgentFacets = {
  readonly name: string;
  readonly category: string | null;
  readonly is_active: boolean;
  readonly personal: boolean;
  readonly knowledge_graph: string | null;
};

const FRAMES: Readonly<Record<AgentEvent['type'], string>> = {
  'AgentCreated.v1': 'agent.created',
  'AgentChanged.v1': 'agent.updated',
  'AgentMcpServersSet.v1': 'agent.updated',
  'AgentRuntimeSet.v1': 'agent.updated',
  'AgentWebhookSet.v1': 'agent.updated',
  'AgentDeactivated.v1': 'agent.deactivated',
  'AgentActivated.v1': 'agent.activated',
};

export const agentEntity = entity<AgentState, AgentEvent, AgentFacets>({
  category: AGENT,
  version: 5,
  codec: agentCodec,
  fold: agentFold,
  resource: agentFields.resource,
  facets: (agent) => ({
    name: digestFacet(agent.name),
    category: agent.category,
    is_active: agent.isActive,
    personal: agent.isPersonal,
    knowledge_graph: agent.knowledgeGraph?.id ?? null,
  }),
  // Everybody who may read the agent receives its frames, and the URL of a webhook may hold a token.
  frame: ({ after, event }) => ({
    type: FRAMES[event.type],
    json: JSON.stringify(after && { ...agentFields.resource(after), webhook_url: null }),
  }),
});

/** The details of an agent that other agents learn. */
export type AgentProfile = Pick<Agent, 'id' | 'name' | 'description'>;

/** Of the agents that were read last. */
const TIP_BYTES = withinMemory(8 * 1024 * 1024);

export class Agents extends Entities<AgentState, AgentEvent, AgentFacets> {
  readonly secrets: AgentSecrets;
  /** Each message of a channel needs its agents, and busy channels have the same agents: only new events of an agent are decoded. */
  readonly #reads: SharedCalls<EntityId, AgentState>;
  readonly #tips = new TipCache(TIP_BYTES);

  constructor(core: EntityCore & { readonly tokenSecret: string }) {
    super(agentEntity, core);
    this.#reads = new SharedCalls((id) => this.#read(core.store, id));
    this.secrets = new AgentSecrets(core.tokenSecret);
  }

  async #read(store: EntityCore['store'], id: EntityId): Promise<AgentState> {
    const { projection } = agentEntity;
    const known = this.#tips.get(id)?.tip as Tip<AgentState> | undefined;
    try {
      const tip = await foldTail(store, projection, id, known ?? emptyTip(projection));
      if (tip.state !== null && tip.revision !== known?.revision) this.#tips.put(id, { tip }, null);
      return tip.state;
    } catch (error) {
      // The stream may have been deleted.
      this.#tips.delete(id);
      throw error;
    }
  }

  /**
   * The agent as the log has it now, also a deactivated one; null if the organization has no such agent. For effects,
   * which must not follow from a read model that lags.
   *
   * @throws `Fault` `store_unavailable`
   */
  async agent(organizationId: EntityId, id: EntityId): Promise<Agent | null> {
    const agent = await this.#reads.of(id);
    return agent?.organizationId === organizationId ? agent : null;
  }

  /** Removes the webhook that has this secret: its server says that it is gone. */
  async disableWebhook(context: CommandContext, id: EntityId, sealedSecret: string): Promise<void> {
    await this.update(context, id, (agent) => decideDisableWebhook(agent, sealedSecret));
  }

  /** Null for a token that cannot be opened: the secret of this Parley was another one when it was given. */
  tokenOf({ id }: Pick<Agent, 'id'>, sealedToken: string): string | null {
    return this.secrets.open(id, sealedToken);
  }

  /** Active agents that are not personal, newest first, from the read model. @param name only those with this name */
  async listed(organizationId: EntityId, size: number, name?: string): Promise<readonly AgentProfile[]> {
    const filter = { is_active: true, personal: false, name: name && digestFacet(name) };
    return (await this.states(organizationId, filter, { size, offset: 0, after: null })).states;
  }

  /** The agent of any organization, if it is active and answers people without an account; null for all others. */
  async publicAgent(id: EntityId): Promise<Agent | null> {
    const agent = await this.#reads.of(id);
    return agent?.isActive === true && agent.features.widget_enabled ? agent : null;
  }
}

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Seals what agents must keep secret, so that the log, its copies and its messages hold nothing that can be used. The key
 * follows from the secret of this Parley (`PARLEY_TOKEN_SECRET`); with another one, nothing sealed before can be opened.
 */
export class AgentSecrets {
  readonly #key: Buffer;

  constructor(tokenSecret: string) {
    this.#key = Buffer.from(hkdfSync('sha256', tokenSecret, '', 'parley secrets of agents', 32));
  }

  /** For one agent: it opens for no other one. Different each time. */
  seal(agentId: EntityId, text: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(agentId));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  /** @returns null for a text that was not sealed with this key, for this agent */
  open(agentId: EntityId, sealed: string): string | null {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null;
    try {
      const nonce = bytes.subarray(0, NONCE_BYTES);
      const tag = bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
      const decipher = createDecipheriv(ALGORITHM, this.#key, nonce).setAAD(Buffer.from(agentId)).setAuthTag(tag);
      const text = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
      return text.toString('utf8');
    } catch {
      return null;
    }
  }
}
