import { createHash } from 'node:crypto';

import { LRUCache } from 'lru-cache';

import { admitJson, admitText } from '#libs/kernel/text.ts';
import { unlessAborted } from '#libs/platform/lifecycle/index.ts';
import {
  type LeftOutTool,
  type RemoteTool,
  type RemoteTools,
  type ToolServerAccess,
  ToolServerError,
  type ToolServers,
} from '#libs/platform/mcp/index.ts';
import { strictSchemaOf } from '#libs/platform/model/index.ts';

import type { McpServer } from './agent.fields.ts';
import type { Agents } from './agent.read.ts';
import type { Agent } from './agent.ts';

/** Of one server: what exceeds a bound is left out. */
const MAX_TOOLS = 40;
/** Of all servers of an agent. Model endpoints take 128, with the four that Parley itself has. */
const MAX_ALL_TOOLS = 124;
const MAX_SCHEMA_CHARS = 16_384;
const MAX_SCHEMAS_CHARS = 65_536;
const MAX_DESCRIPTION = 1_000;
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

/** A tool as an agent is offered it. */
export interface OfferedTool extends RemoteTool {
  /** As the model calls it: with the name of the server, and in characters that endpoints take. */
  readonly offeredAs: string;
}

/** The tools of an agent at one of its servers. */
export interface FoundServer {
  readonly name: string;
  readonly access: ToolServerAccess;
  /** Why there is none of its tools: a sentence without a full stop. */
  readonly failure: string | null;
  readonly tools: readonly OfferedTool[];
  /** Tools that the agent should have, and has not. */
  readonly leftOut: readonly LeftOutTool[];
  /** Names of tools that the settings of the agent leave out. */
  readonly unchosen: readonly string[];
}

/** An agent as far as its tools depend on it. */
export type AgentOfTools = Pick<Agent, 'id' | 'mcpServers' | 'tools'>;

interface SearchOptions {
  readonly signal: AbortSignal;
  /** The name of the only tool that is needed, as it is offered. Default: all. */
  readonly call?: string | null;
  /** Asks the servers now, whatever they said before. */
  readonly isFresh?: boolean;
}

/** `input` is null for a schema that is too large. */
type ListedTool = Omit<RemoteTool, 'input'> & { readonly input: RemoteTool['input'] | null; readonly chars: number };
interface Listed {
  readonly tools: readonly ListedTool[];
  readonly leftOut: readonly LeftOutTool[];
}
type Listing = Listed | { readonly failure: string };

/** The tools of servers that agents name. Lists are kept for a minute in this process. */
export class AgentTools {
  readonly #servers: ToolServers;
  readonly #agents: Pick<Agents, 'tokenOf'>;
  readonly #listings = new LRUCache<string, Promise<Listing>>({ max: MAX_LISTS, maxSize: MAX_LISTS_CHARS });

  constructor(servers: ToolServers, agents: Pick<Agents, 'tokenOf'>) {
    this.#servers = servers;
    this.#agents = agents;
  }

  get call(): ToolServers['call'] {
    return this.#servers.call;
  }

  /** @throws the reason of the signal */
  async of(
    agent: AgentOfTools,
    { signal, call = null, isFresh = false }: SearchOptions,
  ): Promise<readonly FoundServer[]> {
    const servers = agent.mcpServers.filter(({ name }) => call === null || call.startsWith(`${name}${SEPARATOR}`));
    const found = await Promise.all(servers.map((server) => this.#ofServer(agent, server, { signal, isFresh })));
    signal.throwIfAborted();
    return withinAll(found);
  }

  async #ofServer(
    agent: AgentOfTools,
    server: McpServer,
    { signal, isFresh }: { readonly signal: AbortSignal; readonly isFresh: boolean },
  ): Promise<FoundServer> {
    const { name, url, sealedToken } = server;
    const token = sealedToken === null ? null : this.#agents.tokenOf(agent, sealedToken);
    const none = {
      name,
      access: { url, token, group: agent.id },
      failure: null,
      tools: [],
      leftOut: [],
      unchosen: [],
    };
    if (token === null && sealedToken !== null) {
      return { ...none, failure: 'its token cannot be read, and has to be given again' };
    }
    const key = `${agent.id} ${name} ${url} ${sealedToken}`;
    if (isFresh) this.#listings.delete(key);
    const listing = await this.#list({ url, token, group: agent.id }, key, signal);
    return 'failure' in listing ? { ...none, ...listing } : { ...none, ...chosenOf(listing, server, agent) };
  }

  #list(access: ToolServerAccess, key: string, signal: AbortSignal): Promise<Listing> {
    const known = this.#listings.get(key);
    if (known !== undefined) return unlessAborted(known, signal);
    // Not ended by the signal: others may wait for the same list.
    const late = AbortSignal.timeout(LIST_TIMEOUT_MS);
    const listing = this.#servers
      .list(access, late)
      .then(listed)
      .catch((error: unknown): Listing => {
        if (error instanceof ToolServerError) return { failure: error.message };
        if (late.aborted) return { failure: 'the tool server did not answer in time' };
        this.#listings.delete(key);
        throw error;
      });
    this.#listings.set(key, listing, { ttl: LIST_TTL_MS, size: 1 });
    void listing.then(
      (found) => {
        const ttl = 'failure' in found ? FAILURE_TTL_MS : LIST_TTL_MS;
        // Another promise: the cache keeps the size of a value that it has.
        this.#listings.set(key, Promise.resolve(found), { ttl, size: sizeOf(found) });
      },
      () => undefined,
    );
    return unlessAborted(listing, signal);
  }
}

/** A list as it is kept. */
function listed({ tools, leftOut }: RemoteTools): Listed {
  return {
    tools: tools.map(({ description, input, ...tool }) => {
      const chars = charsOf(input);
      const kept = chars > MAX_SCHEMA_CHARS ? null : admitJson(input);
      return { ...tool, description: admitText(description, MAX_DESCRIPTION), input: kept, chars };
    }),
    leftOut,
  };
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
  if ('failure' in listing) return 1;
  const sizes = listing.tools.map(({ name, description, input, chars }) => {
    return name.length + description.length + (input === null ? 1 : chars);
  });
  return [...sizes, ...listing.leftOut.map(({ name, reason }) => (name?.length ?? 0) + reason.length)].reduce(
    (sum, size) => sum + size,
    1,
  );
}

/** The tools that the settings choose, as far as they are within the bounds of one server. */
function chosenOf(
  listing: Listed,
  { name: server, tools: chosen }: McpServer,
  { tools: ofAgent }: AgentOfTools,
): Pick<FoundServer, 'tools' | 'leftOut' | 'unchosen'> {
  const tools: OfferedTool[] = [];
  const leftOut: LeftOutTool[] = [];
  const unchosen: string[] = [];
  let schemasChars = 0;
  for (const { input, chars, ...tool } of listing.tools) {
    const offeredAs = `${server}${SEPARATOR}${safeName(tool.name)}`;
    const isChosen = (chosen?.includes(tool.name) ?? true) && (ofAgent?.includes(offeredAs) ?? true);
    if (!isChosen) unchosen.push(tool.name);
    else if (input === null) leftOut.push({ name: tool.name, reason: 'its input schema is too large' });
    else if (strictSchemaOf({ jsonSchema: input }) === null) {
      leftOut.push({ name: tool.name, reason: 'model endpoints take no tool with such an input schema' });
    } else if (tools.some((one) => one.offeredAs === offeredAs)) {
      leftOut.push({ name: tool.name, reason: 'another tool of the server has the same name' });
    } else if (tools.length >= MAX_TOOLS) {
      leftOut.push({ name: tool.name, reason: `an agent has at most ${MAX_TOOLS} tools of a server` });
    } else if (schemasChars + chars > MAX_SCHEMAS_CHARS) {
      leftOut.push({ name: tool.name, reason: 'the input schemas of the server are too large together' });
    } else {
      tools.push({ ...tool, input, offeredAs });
      schemasChars += chars;
    }
  }
  const known = new Set([...listing.tools, ...listing.leftOut].map(({ name }) => name));
  const unusable = listing.leftOut.filter(({ name }) => name === null || (chosen?.includes(name) ?? true));
  const absent = (chosen ?? []).filter((name) => !known.has(name));
  const missing = absent.map((name) => ({ name, reason: 'the server has no such tool' }));
  return { tools, leftOut: [...leftOut, ...unusable, ...missing], unchosen };
}

/** The first tools of all servers. */
function withinAll(servers: readonly FoundServer[]): readonly FoundServer[] {
  let room = MAX_ALL_TOOLS;
  return servers.map((server) => {
    const tools = server.tools.slice(0, room);
    const others = server.tools.slice(room);
    room -= tools.length;
    if (others.length === 0) return server;
    const reason = `an agent has at most ${MAX_ALL_TOOLS} tools of all its servers`;
    return { ...server, tools, leftOut: [...server.leftOut, ...others.map(({ name }) => ({ name, reason }))] };
  });
}

/** A name that model endpoints take, and that differs for different names. */
function safeName(name: string): string {
  if (SAFE_NAME.test(name) && name.length <= MAX_NAME) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 8);
  return `${name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, MAX_NAME - 9)}_${digest}`;
}
