import { Agent } from 'undici';

import { guardedConnector } from './guarded-connector.ts';
import type { ConnectionRules } from './guarded-connector.ts';

const MAX_HEADER_BYTES = 32 * 1024;
const CONNECTIONS_PER_ORIGIN = 8;
/** With open connections. Idle ones close after `KEEP_ALIVE_MS`. */
const MAX_ORIGINS = 1_000;
const KEEP_ALIVE_MS = 4_000;

/** Connections to addresses that come from outside. @param connectionsPerOrigin to one scheme, host and port */
export function guardedDispatcher(rules: ConnectionRules, connectionsPerOrigin = CONNECTIONS_PER_ORIGIN): Agent {
  return new Agent({
    connect: guardedConnector(rules),
    connections: connectionsPerOrigin,
    maxOrigins: MAX_ORIGINS,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
    // The deadline of the fetch holds instead.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}
