import { createHash } from 'node:crypto';

import { LRUCache } from 'lru-cache';

import { unlessAborted } from '#libs/platform/lifecycle/index.ts';
import { ToolServerError } from '#libs/platform/mcp/index.ts';
import type { RemoteTool, ToolServerAccess, ToolServers } from '#libs/platform/mcp/index.ts';

import type { McpServerOfAgent, RunAgent, RunAgents } from './run.agent.ts';
import { failure } from './run.tools.ts';
import type { RunTool } from './run.tools.ts';

/** Of one server: what exceeds a bound is left out. */
const MAX_TOOLS = 40;
const MAX_SCHEMA_CHARS = 16_384;
const MAX_SCHEMAS_CHARS = 65_536;
const MAX_DESCRIPTION = 1_000;
const MAX_RESULT_CHARS = 20_000;
/** Of the part of a name behind the server's: model endpoints take names of 64 characters. */
const MAX_NAME = 38;
const SAFE_NAME = /^[A-Za-z0-9_-]+$/;
const SEPARATOR = '__';

const LIST_TTL_MS = 60_000;
/** A server that is away costs a run the wait for it once, not with each step. */
const FAILURE_TTL_MS = 10_000;
const LIST_TIMEOUT_MS = 15_000;
const MAX_LISTS = 500;

/** A server whose tools, or some of them, a step does not have. */
export interface MissedServer {
  readonly name: string;
  /** A sentence of ours without a full stop. */
  readonly reason: string;
}

export interface McpParts {
  readonly servers: ToolServers;
  readonly agents: Pick<RunAgents, 'tokenOf'>;
}

type Listing = { readonly tools: readonly RemoteTool[] } | { readonly reason: string };

/** The tools of servers that agents name. Lists are kept for a minute in this process. */
export class McpTools {
  readonly #parts: McpParts;
  readonly #listings = new LRUCache<string, Promise<Listing>>({ max: MAX_LISTS });

  constructor(parts: McpParts) {
    this.#parts = parts;
  }

  /**
   * @param call the name of the only tool that is needed; null: all
   * @throws the reason of `signal`
   */
  async of(
    agent: RunAgent,
    call: string | null,
    signal: AbortSignal,
  ): Promise<{ readonly tools: readonly RunTool[]; readonly missed: readonly MissedServer[] }> {
    const servers = agent.mcpServers.filter(({ name }) => call === null || call.startsWith(`${name}${SEPARATOR}`));
    const found = await Promise.all(servers.map((server) => this.#ofServer(agent, server, signal)));
    signal.throwIfAborted();
    return { tools: found.flatMap(({ tools }) => tools), missed: found.flatMap(({ missed }) => missed ?? []) };
  }

  async #ofServer(agent: RunAgent, server: McpServerOfAgent, signal: AbortSignal) {
    const { name, url, sealedToken } = server;
    const token = sealedToken === null ? null : this.#parts.agents.tokenOf(agent, sealedToken);
    if (token === null && sealedToken !== null) {
      return { tools: [], missed: { name, reason: 'its token cannot be read, and has to be given again' } };
    }
    const listing = await this.#list({ url, token }, `${agent.id} ${name} ${url} ${sealedToken}`, signal);
    if ('reason' in listing) return { tools: [], missed: { name, reason: listing.reason } };
    const wanted = listing.tools.filter((tool) => server.tools === null || server.tools.includes(tool.name));
    const bounded = withinBounds(wanted);
    const tools = bounded.map((tool) => this.#toolOf(name, { url, token }, tool));
    const left = wanted.length - bounded.length;
    return { tools, missed: left === 0 ? null : { name, reason: `${left} of its tools are too large or too many` } };
  }

  #list(access: ToolServerAccess, key: string, signal: AbortSignal): Promise<Listing> {
    const known = this.#listings.get(key);
    if (known !== undefined) return unlessAborted(known, signal);
    // Not ended by the signal: other steps may wait for the same list.
    const late = AbortSignal.timeout(LIST_TIMEOUT_MS);
    const listing = this.#parts.servers
      .list(access, late)
      .then((tools): Listing => ({ tools }))
      .catch((error: unknown): Listing => {
        if (error instanceof ToolServerError) return { reason: error.message };
        if (late.aborted) return { reason: 'the tool server did not answer in time' };
        this.#listings.delete(key);
        throw error;
      });
    this.#listings.set(key, listing, { ttl: LIST_TTL_MS });
    void listing.then(
      (found) => 'reason' in found && this.#listings.set(key, listing, { ttl: FAILURE_TTL_MS }),
      () => undefined,
    );
    return unlessAborted(listing, signal);
  }

  #toolOf(server: string, access: ToolServerAccess, remote: RemoteTool): RunTool {
    const { servers } = this.#parts;
    return {
      name: `${server}${SEPARATOR}${safeName(remote.name)}`,
      description: remote.description.slice(0, MAX_DESCRIPTION),
      input: { jsonSchema: remote.input },
      isRepeatable: remote.isRepeatable,
      displayText: () => `Calling ${remote.name.slice(0, 100)} of ${server}`,
      async run(input, { signal }) {
        try {
          const { isError, text } = await servers.call(access, { name: remote.name, input }, signal);
          const result = { server, text: text.slice(0, MAX_RESULT_CHARS).toWellFormed() };
          const is_cut = text.length > MAX_RESULT_CHARS;
          return { status: isError ? 'failure' : 'success', result: { ...result, is_cut } };
        } catch (error) {
          signal.throwIfAborted();
          if (!(error instanceof ToolServerError)) throw error;
          return failure(`${error.message}${remote.isRepeatable ? '' : '; what came of the call is not known'}`);
        }
      },
    };
  }
}

/** The first ones of each name that fit. */
function withinBounds(tools: readonly RemoteTool[]): readonly RemoteTool[] {
  const names = new Set<string>();
  let chars = 0;
  return tools.filter(({ name, input }) => {
    const { length } = JSON.stringify(input);
    const isNew = !names.has(safeName(name));
    if (!isNew || names.size >= MAX_TOOLS || length > MAX_SCHEMA_CHARS || chars + length > MAX_SCHEMAS_CHARS)
      return false;
    names.add(safeName(name));
    chars += length;
    return true;
  });
}

/** A name that model endpoints take, and that differs for different names. */
function safeName(name: string): string {
  if (SAFE_NAME.test(name) && name.length <= MAX_NAME) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME - 9)}_${digest}`;
}
