/** Servers with tools for the Model Context Protocol. */
export type { LeftOutTool, RemoteTool, RemoteResult } from './remote-tools.ts';
export type { ToolServerAccess } from './sessions.ts';
export { ToolServerError } from './tool-server-error.ts';
export { toolServers } from './tool-servers.ts';
export type { RemoteTools, ToolServers } from './tool-servers.ts';
