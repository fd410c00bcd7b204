/** What the tests of tool servers share: one server, which is well-behaved until a test changes its habits. */
import { afterAll, beforeAll, beforeEach } from 'vitest';

import { createFetcher, type Fetcher } from '#libs/platform/fetch/index.ts';
import { toolServers, type ToolServers } from '#libs/platform/mcp/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { type Habits, type McpTestServer, resetMcpServer, startMcpServer } from '#test/support/mcp-server.ts';

export let server: McpTestServer;
export let fetcher: Fetcher;
export let servers: ToolServers;

export const never = new AbortController().signal;
export const limits = { timeoutMs: 30_000, maxBytes: 1024 * 1024 };

export const access = () => ({ url: server.url, token: null });
export const list = () => servers.list(access(), never);
export const schema = { type: 'object' };
export const call = (name: string, input = {}, token: string | null = null) =>
  servers.call({ ...access(), token }, { name, input, schema }, never);
export const toolCall = (params: Habits['result']): void => {
  server.habits = {
    ...server.habits,
    result: (message) => (message.method === 'tools/call' ? params?.(message) : undefined),
  };
};

/** Starts the server for the file; each test begins with its first habits. */
export function useServerOfTools(): void {
  beforeAll(async () => {
    server = await startMcpServer();
    const metrics = createMetrics({ processMetrics: false });
    fetcher = createFetcher({ metrics, allowHosts: [{ host: '127.0.0.1', port: server.port }] });
  });
  beforeEach(() => {
    resetMcpServer(server);
    // Without what it remembers of the server.
    servers = toolServers(fetcher, limits);
  });
  afterAll(async () => {
    await fetcher.close();
    await server.stop();
  });
}
