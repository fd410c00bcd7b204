/** Tools of other servers, by the Model Context Protocol. */
export { toolServers, ToolServerError } from './tool-servers.ts';
export type { RemoteResult, RemoteTool, ToolServerAccess, ToolServers } from './tool-servers.ts';
