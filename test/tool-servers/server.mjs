// Servers made with the official SDK for TypeScript, of both of its major versions.
//
// node server.mjs PORT FOLDER: of the package `@modelcontextprotocol/sdk` (1) or `@modelcontextprotocol/node` (2)
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const [port, folder] = process.argv.slice(2);
const required = createRequire(`${folder}/package.json`);
const isOld = required('./package.json').name.endsWith('/sdk');
const { McpServer } = required(isOld ? '@modelcontextprotocol/sdk/server/mcp.js' : '@modelcontextprotocol/server');

function server() {
  const made = new McpServer({ name: 'orders', version: '1.0.0' });
  made.registerTool('caller', { description: 'Tells who calls.' }, (ctx) => ({
    content: [{ type: 'text', text: JSON.stringify(ctx._meta ?? ctx.mcpReq?._meta ?? null) }],
  }));
  return made;
}

const handler = isOld ? statelessHandler() : versionTwoHandler();
createServer((request, response) => void handler(request, response)).listen(Number(port), '127.0.0.1');

function statelessHandler() {
  const { StreamableHTTPServerTransport } = required('@modelcontextprotocol/sdk/server/streamableHttp.js');
  return async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on('close', () => void transport.close());
    await server().connect(transport);
    await transport.handleRequest(request, response);
  };
}

function versionTwoHandler() {
  const { createMcpHandler } = required('@modelcontextprotocol/server');
  return required('@modelcontextprotocol/node').toNodeHandler(createMcpHandler(server));
}
