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
/** Of all lists together. */
const MAX_LISTS_CHARS = 8 * 1024 * 1024;

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

/** `input` is null for a schema that is too large. */
type ListedTool = Omit<RemoteTool, 'input'> & { readonly input: RemoteTool['input'] | null; readonly chars: number };
type UsableTool = ListedTool & Pick<RemoteTool, 'input'>;
type Listing = { readonly tools: readonly ListedTool[] } | { readonly reason: string };

/** The tools of servers that agents name. Lists are kept for a minute in this process. */
export class McpTools {
  readonly #parts: McpParts;
  readonly #listings = new LRUCache<string, Promise<Listing>>({ max: MAX_LISTS, maxSize: MAX_LISTS_CHARS });

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
      .then((tools): Listing => ({ tools: tools.map(listed) }))
      .catch((error: unknown): Listing => {
        if (error instanceof ToolServerError) return { reason: error.message };
        if (late.aborted) return { reason: 'the tool server did not answer in time' };
        this.#listings.delete(key);
        throw error;
      });
    this.#listings.set(key, listing, { ttl: LIST_TTL_MS, size: 1 });
    void listing.then(
      (found) => {
        const ttl = 'reason' in found ? FAILURE_TTL_MS : LIST_TTL_MS;
        // Another promise: the cache keeps the size of a value that it has.
        this.#listings.set(key, Promise.resolve(found), { ttl, size: sizeOf(found) });
      },
      () => undefined,
    );
    return unlessAborted(listing, signal);
  }

  #toolOf(server: string, access: ToolServerAccess, remote: UsableTool): RunTool {
    const { servers } = this.#parts;
    return {
      name: `${server}${SEPARATOR}${safeName(remote.name)}`,
      description: remote.description,
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

/** What is kept of a tool. */
function listed({ name, description, input, isRepeatable }: RemoteTool): ListedTool {
  const chars = charsOf(input);
  const kept = chars > MAX_SCHEMA_CHARS ? null : input;
  return { name, description: description.slice(0, MAX_DESCRIPTION), isRepeatable, input: kept, chars };
}

/** Infinite for a schema that is nested too deeply to be written. */
function charsOf(input: RemoteTool['input']): number {
  try {
    return JSON.stringify(input).length;
  } catch {
    return Infinity;
  }
}

function sizeOf(listing: Listing): number {
  if ('reason' in listing) return 1;
  const sizes = listing.tools.map(({ name, description, input, chars }) => {
    return name.length + description.length + (input === null ? 1 : chars);
  });
  return sizes.reduce((sum, size) => sum + size, 1);
}

/** The first ones of each name that fit. */
function withinBounds(tools: readonly ListedTool[]): readonly UsableTool[] {
  const names = new Set<string>();
  let sum = 0;
  return tools.filter((tool): tool is UsableTool => {
    const name = safeName(tool.name);
    if (tool.input === null || names.has(name) || names.size >= MAX_TOOLS || sum + tool.chars > MAX_SCHEMAS_CHARS)
      return false;
    names.add(name);
    sum += tool.chars;
    return true;
  });
}

/** A name that model endpoints take, and that differs for different names. */
function safeName(name: string): string {
  if (SAFE_NAME.test(name) && name.length <= MAX_NAME) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME - 9)}_${digest}`;
}
