import { LRUCache } from 'lru-cache';
import { Agent } from 'undici';

import { type ConnectionRules, guardedConnector } from './guarded-connector.ts';

const MAX_HEADER_BYTES = 32 * 1024;
const CONNECTIONS_PER_ORIGIN = 8;
/** With open connections. Idle ones close after `KEEP_ALIVE_MS`. */
const MAX_ORIGINS = 250;
/** With connections that were used last. */
const MAX_GROUPS = 1_000;
const KEEP_ALIVE_MS = 4_000;

/** The connections of each group. */
export class GroupedDispatchers {
  readonly #rules: ConnectionRules;
  readonly #connectionsPerOrigin: number | undefined;
  readonly #all = new Set<Agent>();
  readonly #agents = new LRUCache<string, Agent>({
    max: MAX_GROUPS,
    // Waits for the requests under way.
    dispose: (agent) => void agent.close().finally(() => this.#all.delete(agent)),
  });

  constructor(rules: ConnectionRules, connectionsPerOrigin?: number) {
    this.#rules = rules;
    this.#connectionsPerOrigin = connectionsPerOrigin;
  }

  of(group: string): Agent {
    const known = this.#agents.get(group);
    if (known !== undefined) return known;
    const agent = guardedDispatcher(this.#rules, this.#connectionsPerOrigin);
    this.#all.add(agent);
    this.#agents.set(group, agent);
    return agent;
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#all].map((agent) => agent.destroy()));
  }
}

/** Connections to addresses that come from outside. @param connectionsPerOrigin to one scheme, host and port */
function guardedDispatcher(rules: ConnectionRules, connectionsPerOrigin = CONNECTIONS_PER_ORIGIN): Agent {
  return new Agent({
    connect: guardedConnector(rules),
    connections: connectionsPerOrigin,
    maxOrigins: MAX_ORIGINS,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The deadline of the fetch holds instead.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
