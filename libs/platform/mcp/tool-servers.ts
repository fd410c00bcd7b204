import { z } from 'zod';

import { isObject } from '#libs/kernel/json.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';

import { type LeftOutTool, readTool, type RemoteTool, readResult, type RemoteResult } from './remote-tools.ts';
import { textOf } from './server-words.ts';
import { type Session, Sessions, type ToolServerAccess, type ToolServerLimits } from './sessions.ts';
import { ToolServerError } from './tool-server-error.ts';

/** The tools of a server. */
export interface RemoteTools {
  readonly tools: readonly RemoteTool[];
  readonly leftOut: readonly LeftOutTool[];
}

export interface RemoteCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Of the tool, as it was listed: servers since 2026 may want arguments in headers. */
  readonly schema: RemoteTool['input'];
  /** Sent as `_meta`. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

const LIMITS: ToolServerLimits = { timeoutMs: 60_000, maxBytes: 8 * 1024 * 1024 };
/** Of one server that are read. */
const MAX_TOOLS = 1_000;
const MAX_PAGES = 100;

/**
 * Port: servers that agents use the tools of. Guarantees: requests pass the guarded fetcher, follow no redirects, and have
 * bounded time and bytes; a tool, an item of a result or a message that cannot be read costs only itself. Omissions:
 * no call is repeated that may have been made; nothing is kept.
 */
export interface ToolServers {
  /** @throws ToolServerError; the reason of `signal` */
  list(access: ToolServerAccess, signal: AbortSignal): Promise<RemoteTools>;
  /** A call that the server refuses is a result. @throws as `list` */
  call(access: ToolServerAccess, call: RemoteCall, signal: AbortSignal): Promise<RemoteResult>;
}

export function toolServers(fetcher: Pick<Fetcher, 'open'>, limits = LIMITS): ToolServers {
  const sessions = new Sessions(fetcher, limits);
  return {
    list: (access, signal) => sessions.use(access, signal, listedIn),
    async call(access, call, signal) {
      try {
        return await sessions.use(access, signal, (session) => calledIn(session, call));
      } catch (error) {
        const { refusal = null, stage = null, message = '' } = error instanceof ToolServerError ? error : {};
        // The server has answered the call: with a JSON-RPC error, which names wrong arguments, for instance.
        if (stage !== 'opening' && refusal?.code !== null && refusal !== null) return { isError: true, text: message };
        throw error;
      }
    },
  };
}

/** Reads all pages, up to a bound. A later page that cannot be read costs only itself and those behind it. */
async function listedIn(session: Session): Promise<RemoteTools> {
  const found: (RemoteTool | LeftOutTool)[] = [];
  const cursors = new Set<string | null>();
  let cursor: string | null = null;
  let cut: string | null = null;
  do {
    cursors.add(cursor);
    try {
      const page = await pageAt(session, cursor);
      found.push(...page.tools.map(readTool));
      cursor = page.next;
    } catch (error) {
      if (found.length === 0 || session.options.signal.aborted) throw error;
      cut = 'a page of the tools could not be read';
    }
    if (cut === null && cursor !== null && (cursors.size >= MAX_PAGES || found.length >= MAX_TOOLS)) {
      cut = `only the first ${Math.min(found.length, MAX_TOOLS)} tools of the server were read`;
    }
  } while (cut === null && cursor !== null && !cursors.has(cursor));
  const read = found.slice(0, MAX_TOOLS);
  return {
    tools: read.filter((tool) => 'input' in tool),
    leftOut: [...read.filter((tool) => 'reason' in tool), ...(cut === null ? [] : [{ name: null, reason: cut }])],
  };
}

async function pageAt({ client, exchange, options }: Session, cursor: string | null) {
  // Not `listTools`, which keeps the list and looks for headers in it. The result is in the exchange.
  const params = cursor === null ? {} : { cursor };
  await client.request({ method: 'tools/list', params }, z.unknown(), options);
  const { answer } = exchange;
  if (!isObject(answer) || !Array.isArray(answer.tools)) throw notValid();
  const next = textOf(answer.nextCursor);
  return { tools: answer.tools as readonly unknown[], next: next === '' ? null : next };
}

async function calledIn({ client, exchange, options }: Session, { name, input, schema, meta }: RemoteCall) {
  const toolDefinition = { name, inputSchema: { ...schema, type: 'object' as const } };
  const params = { name, arguments: { ...input }, ...(meta !== undefined && { _meta: { ...meta } }) };
  await client.callTool(params, { ...options, toolDefinition });
  const result = readResult(exchange.answer);
  if (result === null) throw notValid();
  return result;
}

function notValid(): ToolServerError {
  return new ToolServerError('the tool server gave an answer that is not valid');
}
