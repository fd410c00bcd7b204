import type { Client } from '@modelcontextprotocol/sdk/client/index.js';

import { VERSION } from '#libs/platform/config/index.ts';
import { FetchError, fetchLike } from '#libs/platform/fetch/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';
import { unlessAborted } from '#libs/platform/lifecycle/index.ts';

export interface ToolServerAccess {
  /** Of the endpoint for streamable HTTP. */
  readonly url: string;
  /** Sent as bearer token; null: none. */
  readonly token: string | null;
}

/** What a server says of one of its tools. All of it is data of someone else. */
export interface RemoteTool {
  readonly name: string;
  readonly description: string;
  /** JSON schema of the arguments. */
  readonly input: Readonly<Record<string, unknown>>;
  /** The server says that a call may be made twice. */
  readonly isRepeatable: boolean;
}

export interface RemoteResult {
  readonly isError: boolean;
  /** The texts of the result; other parts are named by their types. */
  readonly text: string;
}

/** Why a server could not be used: a sentence of ours, for users, without a full stop. */
export class ToolServerError extends Error {
  override readonly name = 'ToolServerError';
}

export interface ToolServerLimits {
  /** For all tools of a server, or for one call, with the start of its session. */
  readonly timeoutMs: number;
  /** Of one response. */
  readonly maxBytes: number;
}

const LIMITS: ToolServerLimits = { timeoutMs: 60_000, maxBytes: 2 * 1024 * 1024 };
/** Pages of a list of tools that are read. */
const MAX_PAGES = 4;
/** For the request that ends a session, which servers need not answer. */
const MAX_END_MS = 1_000;

/**
 * Port: servers that agents use the tools of. Guarantees: requests pass the guarded fetcher, follow no redirects, and have
 * bounded time and bytes. Omissions: nothing is retried or kept; a call that fails may have been made.
 */
export interface ToolServers {
  /** @throws ToolServerError; the reason of `signal` */
  list(access: ToolServerAccess, signal: AbortSignal): Promise<readonly RemoteTool[]>;
  /** @throws as `list` */
  call(
    access: ToolServerAccess,
    call: { readonly name: string; readonly input: Readonly<Record<string, unknown>> },
    signal: AbortSignal,
  ): Promise<RemoteResult>;
}

export function toolServers(fetcher: Pick<Fetcher, 'open'>, limits = LIMITS): ToolServers {
  const inSession = session(fetcher, limits);
  return {
    list: (access, signal) =>
      inSession(access, signal, async (client, options) => {
        const { ListToolsResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
        const tools: RemoteTool[] = [];
        let cursor: string | undefined;
        for (let page = 0; page === 0 || (cursor !== undefined && page < MAX_PAGES); page += 1) {
          // Not `listTools`: that compiles the schemas of the results, which a server may make arbitrarily costly.
          const params = cursor === undefined ? {} : { cursor };
          const listed = await client.request({ method: 'tools/list', params }, ListToolsResultSchema, options);
          for (const { name, description = '', inputSchema, annotations } of listed.tools) {
            const isRepeatable = annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
            tools.push({ name, description, input: inputSchema, isRepeatable });
          }
          cursor = listed.nextCursor;
        }
        return tools;
      }),
    call: (access, { name, input }, signal) =>
      inSession(access, signal, async (client, options) => {
        const { CallToolResultSchema } = await import('@modelcontextprotocol/sdk/types.js');
        const params = { name, arguments: { ...input } };
        const result = await client.request({ method: 'tools/call', params }, CallToolResultSchema, options);
        const texts = result.content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`));
        const { structuredContent } = result;
        const text = texts.join('\n') || (structuredContent === undefined ? '' : JSON.stringify(structuredContent));
        return { isError: result.isError === true, text };
      }),
  };
}

interface RequestOptions {
  readonly signal: AbortSignal;
  readonly timeout: number;
}

/** Does one thing in a session of its own, which is ended afterwards. The library is loaded with the first session. */
function session(fetcher: Pick<Fetcher, 'open'>, limits: ToolServerLimits) {
  const fetchOf = fetchLike(fetcher, limits);
  return async <T>(
    { url, token }: ToolServerAccess,
    signal: AbortSignal,
    use: (client: Client, options: RequestOptions) => Promise<T>,
  ): Promise<T> => {
    const [{ Client }, { StreamableHTTPClientTransport }] = await Promise.all([
      import('@modelcontextprotocol/sdk/client/index.js'),
      import('@modelcontextprotocol/sdk/client/streamableHttp.js'),
    ]);
    const transport = new StreamableHTTPClientTransport(new URL(url), {
      // Nothing that a server says without being asked is of interest.
      fetch: async (to, init) => (init?.method === 'GET' ? new Response(null, { status: 405 }) : fetchOf(to, init)),
      requestInit: { headers: token === null ? {} : { authorization: `Bearer ${token}` } },
      reconnectionOptions: {
        maxRetries: 0,
        initialReconnectionDelay: 1,
        maxReconnectionDelay: 1,
        reconnectionDelayGrowFactor: 1,
      },
    });
    const client = new Client({ name: 'Parley', version: VERSION });
    const broken = new AbortController();
    // Also for streams that break off: the library would wait for their end.
    // eslint-disable-next-line unicorn/prefer-add-event-listener -- the client is no event target
    client.onerror = (error) => broken.abort(error);
    const late = AbortSignal.timeout(limits.timeoutMs);
    const over = AbortSignal.any([signal, broken.signal, late]);
    const options = { signal: over, timeout: limits.timeoutMs };
    try {
      // `Transport` has the members of the class; its types differ in how they write optional ones.
      await unlessAborted(client.connect(transport as Parameters<Client['connect']>[0], options), over);
      return await unlessAborted(use(client, options), over);
    } catch (error) {
      signal.throwIfAborted();
      throw late.aborted
        ? new ToolServerError('the tool server did not answer in time', { cause: error })
        : errorOf(error);
    } finally {
      await unlessAborted(transport.terminateSession(), AbortSignal.timeout(MAX_END_MS)).catch(() => undefined);
      await client.close().catch(() => undefined);
    }
  };
}

function errorOf(error: unknown): ToolServerError {
  const cause = { cause: error };
  if (error instanceof FetchError) return new ToolServerError(error.message, cause);
  const code = error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : null;
  if (code !== null && code >= 400 && code <= 599) {
    return new ToolServerError(`the tool server answered with the status ${code}`, cause);
  }
  // Of JSON-RPC: the text is the server's.
  if (code !== null && code <= -32_000 && code >= -32_768) {
    return new ToolServerError(`the tool server refused the request with the code ${code}`, cause);
  }
  return new ToolServerError('the tool server gave an answer that is not valid', cause);
}
