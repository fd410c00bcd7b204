/** Agents, which answer in the channels of their organization. One stream, `agent-<id>`, for each. */
import type { Module } from '#libs/platform/runtime/index.ts';

import { inboxEntity } from './agent.inbox.ts';
import { agentEntity } from './agent.read.ts';

export { type AgentProfile, Agents } from './agent.read.ts';
export { agentRoutes, requireAgent } from './agent.http.ts';
export { endOf, Inboxes, inboxCodec, invocationFor } from './agent.inbox.ts';
export { AgentTools, type FoundServer, type OfferedTool } from './agent.tools.ts';
export type { Agent } from './agent.ts';

export const agentsModule = {
  name: 'agents',
  projections: [agentEntity.projection, inboxEntity.projection],
} satisfies Module;
