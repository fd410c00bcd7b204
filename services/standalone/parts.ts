import { bootstrapOn } from '#services/bootstrap.ts';
import { gatewayRole } from '#services/gateway/role.ts';
import { healthRole } from '#services/health/role.ts';
import { projectorRole } from '#services/projector/role.ts';
import { realtimeRole } from '#services/realtime/role.ts';
import { relayRole } from '#services/relay/role.ts';

import type { StandaloneParts } from './app.ts';

/** What `standalone` is made of besides the stores. */
export const parts: StandaloneParts = {
  // Realtime stops first: while it sends away its sockets, the gateway still answers.
  roles: [projectorRole, relayRole, gatewayRole, realtimeRole],
  withoutGateway: healthRole,
  bootstrap: bootstrapOn,
};
