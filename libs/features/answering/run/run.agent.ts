import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

/** What runs need to know of an agent. */
export interface RunAgent {
  readonly id: EntityId;
  readonly name: string;
  readonly description: string;
  readonly personality: string;
  readonly instructions: string | null;
  readonly isActive: boolean;
  readonly isPersonal: boolean;
  readonly features: { readonly general_web_search: boolean; readonly general_agent_search: boolean };
  readonly knowledgeGraph: { readonly id: EntityId; readonly name: string } | null;
  /** Of the model: 0 is the most predictable. */
  readonly temperature: number;
  /** Whether the endpoint's default is used in its place. */
  readonly usesDefaultTemperature?: boolean | undefined;
  /** Null: the configured model. */
  readonly modelName: string | null;
  /** Names of the only tools that it may use; null: all that its features allow. */
  readonly tools: readonly string[] | null;
  readonly mcpServers: readonly McpServerOfAgent[];
  /** What answers: Parley, or the agent's team. */
  readonly runtime: 'parley' | 'external';
  readonly webhook: { readonly url: string; readonly sealedSecret: string } | null;
}

/** A server whose tools an agent may use. */
export interface McpServerOfAgent {
  readonly name: string;
  readonly url: string;
  /** Names of the only tools of the server that it may use; null: all. */
  readonly tools: readonly string[] | null;
  readonly sealedToken: string | null;
}

/** What an agent that may ask others learns of them. */
export type ListedAgent = Pick<RunAgent, 'id' | 'name' | 'description'>;

/** Port: agents. */
export interface RunAgents {
  /** As the log has it now, also a deactivated one; null if the organization has no such agent. @throws `Fault` `store_unavailable` */
  agent(organizationId: EntityId, id: EntityId): Promise<RunAgent | null>;
  /** Removes the webhook that has this secret. */
  disableWebhook(context: CommandContext, id: EntityId, sealedSecret: string): Promise<void>;
  /** Null for a token that cannot be opened. */
  tokenOf(agent: Pick<RunAgent, 'id'>, sealedToken: string): string | null;
  /** Active agents that are not personal, newest first, from the read model. @param name only those with this name */
  listed(organizationId: EntityId, size: number, name?: string): Promise<readonly ListedAgent[]>;
}
