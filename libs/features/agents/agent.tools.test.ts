import { expect, it } from 'vitest';

import type { RemoteTool } from '#libs/platform/mcp/index.ts';

import { AgentTools } from './agent.tools.ts';

it('keeps lists of servers within a bound for all of them together', async () => {
  const listed: string[] = [];
  const tools = new AgentTools(
    {
      list: ({ url }) => {
        listed.push(url);
        const input = { type: 'object', description: 'x'.repeat(url === 'small' ? 10 : 16_000) };
        const tool = (index: number): RemoteTool => ({
          name: `t${index}`,
          description: '',
          input,
          isRepeatable: false,
        });
        return Promise.resolve({ tools: Array.from({ length: 300 }, (_, index) => tool(index)), leftOut: [] });
      },
      call: () => Promise.reject(new Error('is not called')),
    },
    { tokenOf: () => null },
  );
  const list = async (...urls: readonly string[]) => {
    const never = new AbortController().signal;
    for (const url of urls) {
      const mcpServers = [{ name: 'server', url, tools: null, sealedToken: null }];
      await tools.of({ id: 'agent', mcpServers, tools: null }, { signal: never });
    }
  };
  await list('small', 'large', 'large', 'small', 'other');
  expect(listed).toEqual(['small', 'large', 'other']);
  // 8 MiB have room for one of the large ones.
  await list('small', 'other', 'large');
  expect(listed).toEqual(['small', 'large', 'other', 'large']);
});
