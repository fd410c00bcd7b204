/** A server on loopback with tools for the Model Context Protocol: the SDK's server side, over streamable HTTP. */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js';

/** A tool, and what it answers. */
export type TestTool = Partial<Tool> & {
  readonly run?: (input: Record<string, unknown>) => CallToolResult | Promise<CallToolResult>;
};

export interface McpTestServer {
  readonly port: number;
  readonly url: string;
  /** By name. May be changed. */
  readonly tools: Map<string, TestTool>;
  readonly calls: { readonly name: string; readonly input: Record<string, unknown> }[];
  readonly headers: IncomingHttpHeaders[];
  /** Answers all requests instead of the protocol; null: as the protocol demands. */
  instead: ((response: ServerResponse, request: IncomingMessage) => void) | null;
  stop(): Promise<void>;
}

export const saysText = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] });

export async function startMcpServer(): Promise<McpTestServer> {
  const tools: McpTestServer['tools'] = new Map();
  const calls: McpTestServer['calls'] = [];
  const headers: IncomingHttpHeaders[] = [];
  const http = createServer((request, response) => {
    headers.push(request.headers);
    if (started.instead !== null) started.instead(response, request);
    else void answer(request, response, tools, calls);
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  const started: McpTestServer = {
    port,
    url: `http://127.0.0.1:${port}/mcp`,
    tools,
    calls,
    headers,
    instead: null,
    stop: () =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeAllConnections();
      }),
  };
  return started;
}

/** Answers each request for a list of tools with this JSON, after a delay, in place of the SDK. */
export function listing(list: string, delayMs = 0): McpTestServer['instead'] {
  return (response, request) => {
    void json(request).then(
      (body) => {
        const { id, method, params } = body as { id?: number; method?: string; params?: { protocolVersion?: string } };
        const serverInfo = { name: 'test', version: '1' };
        const session = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo };
        const result = method === 'initialize' ? JSON.stringify(session) : list;
        setTimeout(() => {
          if (id === undefined) response.writeHead(202).end();
          else {
            response.setHeader('content-type', 'application/json');
            response.end(`{"jsonrpc":"2.0","id":${id},"result":${result}}`);
          }
        }, delayMs);
      },
      () => response.writeHead(405).end(),
    );
  };
}

/** Without sessions: each request has a server of its own. */
async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  tools: McpTestServer['tools'],
  calls: McpTestServer['calls'],
): Promise<void> {
  const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    // Answers of JSON have no functions.
    tools: [...tools].map(([name, tool]) => ({ inputSchema: { type: 'object' as const }, ...tool, name })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name, arguments: input = {} } }) => {
    calls.push({ name, input });
    return (await tools.get(name)?.run?.(input)) ?? saysText('nothing');
  });
  const transport = new StreamableHTTPServerTransport();
  response.on('close', () => void server.close());
  await server.connect(transport as Parameters<Server['connect']>[0]);
  await transport.handleRequest(request, response);
}
