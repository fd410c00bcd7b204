/** A server on loopback with tools for the Model Context Protocol: well-behaved, or as odd as a test wants. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

// eslint-disable-next-line typescript/no-explicit-any -- tests send what servers send, also what is wrong
type Json = any;

/** A tool, with the members that a list shows, and what it answers. */
export interface TestTool {
  readonly [member: string]: unknown;
  readonly run?: (input: Record<string, unknown>) => unknown;
}

/** A message of JSON-RPC that the server received. */
export interface Received {
  readonly id?: unknown;
  readonly method: string;
  readonly params?: Json;
}

/** How the server answers; by default as the protocol demands, with JSON and without sessions. */
export interface Habits {
  /** Answers are streams of server-sent events. */
  readonly streams?: boolean;
  /** The id of the session that every request after `initialize` must have. */
  readonly session?: () => string;
  /** Results by method, as they are sent. Undefined: the usual one. */
  readonly result?: ((message: Received) => unknown) | undefined;
  /** Whole answers by method, as they are sent, in place of a result. */
  readonly answer?: ((message: Received, response: ServerResponse, request: IncomingMessage) => boolean) | undefined;
  /** Sent before each answer of a tool, in the same stream; texts as they are. */
  readonly before?: readonly (object | string)[];
}

export interface McpTestServer {
  readonly port: number;
  readonly url: string;
  /** By name. May be changed. */
  readonly tools: Map<string, TestTool>;
  readonly calls: { readonly name: string; readonly input: Record<string, unknown> }[];
  /** `_meta` of the calls. */
  readonly metas: unknown[];
  readonly headers: IncomingHttpHeaders[];
  /** HTTP methods and methods of JSON-RPC, in order. */
  readonly received: string[];
  /** Answers all requests instead of the protocol; null: as the protocol demands. */
  instead: ((response: ServerResponse, request: IncomingMessage) => void) | null;
  habits: Habits;
  stop(): Promise<void>;
}

export const saysText = (text: string): object => ({ content: [{ type: 'text', text }] });

export async function startMcpServer(): Promise<McpTestServer> {
  const http = createServer((request, response) => {
    started.headers.push(request.headers);
    if (started.instead !== null) started.instead(response, request);
    else void handle(started, request, response);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const started: McpTestServer = {
    port,
    url: `http://127.0.0.1:${port}/mcp`,
    tools: new Map(),
    calls: [],
    metas: [],
    headers: [],
    received: [],
    instead: null,
    habits: {},
    stop: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
  return started;
}

/** Forgets what a test has changed. */
export function resetMcpServer(server: McpTestServer): void {
  Object.assign(server, { instead: null, habits: {} });
  server.tools.clear();
  for (const list of [server.calls, server.metas, server.headers, server.received]) list.length = 0;
}

/** Sends messages as one stream of server-sent events. */
export function sendStream(response: ServerResponse, ...messages: readonly (object | string)[]): ServerResponse {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const one of messages) response.write(typeof one === 'string' ? one : `data: ${JSON.stringify(one)}\n\n`);
  return response;
}

/** Answers each request for a list of tools with this JSON, as it is. */
export function listing(list: string): NonNullable<Habits['answer']> {
  return ({ id, method }, response) => {
    if (method !== 'tools/list') return false;
    response.setHeader('content-type', 'application/json');
    response.end(`{"jsonrpc":"2.0","id":${String(id)},"result":${list}}`);
    return true;
  };
}

async function handle(server: McpTestServer, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { habits } = server;
  if (request.method !== 'POST') {
    server.received.push(String(request.method));
    const hasAnswered = habits.answer?.({ method: String(request.method) }, response, request);
    if (hasAnswered !== true) response.writeHead(405).end();
    return;
  }
  const message = (await json(request)) as Received;
  server.received.push(message.method);
  if (habits.answer?.(message, response, request) === true) return;
  const session = habits.session?.();
  if (session !== undefined && message.method === 'initialize') response.setHeader('mcp-session-id', session);
  else if (session !== undefined && request.headers['mcp-session-id'] !== session) {
    const error = { code: -32_001, message: 'Session not found' };
    response.writeHead(404, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }));
    return;
  }
  if (message.id === undefined) {
    response.writeHead(202).end();
    return;
  }
  const result = habits.result?.(message) ?? (await usualResult(server, message));
  const answer =
    result === undefined
      ? { jsonrpc: '2.0', id: message.id, error: { code: -32_601, message: 'Method not found' } }
      : { jsonrpc: '2.0', id: message.id, result };
  if (habits.streams === true) {
    sendStream(response, ...(message.method === 'tools/call' ? (habits.before ?? []) : []), answer).end();
    return;
  }
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(answer));
}

async function usualResult(server: McpTestServer, { method, params }: Received): Promise<unknown> {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'test', version: '1' },
      };
    case 'tools/list':
      // Answers of JSON have no functions.
      return { tools: [...server.tools].map(([name, tool]) => ({ inputSchema: { type: 'object' }, ...tool, name })) };
    case 'tools/call': {
      const { name, arguments: input = {} } = params;
      server.calls.push({ name, input });
      server.metas.push(params?._meta);
      return (await server.tools.get(name)?.run?.(input)) ?? saysText('nothing');
    }
    default:
      return undefined;
  }
}
