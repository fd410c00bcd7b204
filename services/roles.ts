/*
 * The roles of Parley. All imports are types or dynamic, so that an older Node can link this file (see `cli/main.ts`),
 * and a process loads only what it runs.
 */
import type { Role } from './role.ts';

const STORES = ['PARLEY_TOKEN_SECRET', 'EVENTSTORE_URL', 'REDIS_URL'] as const;

/** In the order in which `standalone` starts them. It stops `realtime` first, so that the gateway serves meanwhile. */
export const ROLES = [
  {
    name: 'projector',
    does: 'Apply the events of the log to the read models',
    needs: STORES,
    start: async (context, config) => (await import('./projector/role.ts')).start(context, config),
  },
  {
    name: 'relay',
    does: 'Publish the log to Kafka, or stand by for the active relay',
    needs: [...STORES, 'KAFKA_BROKERS'],
    start: async (context, config) => (await import('./relay/role.ts')).start(context, config),
  },
  {
    name: 'worker',
    does: 'Run reactors: effects that follow from events',
    needs: STORES,
    start: async (context, config) => (await import('./worker/role.ts')).start(context, config),
  },
  {
    name: 'gateway',
    does: 'Serve the HTTP API',
    needs: STORES,
    listens: true,
    bootstraps: true,
    start: async (context, config) => (await import('./gateway/role.ts')).start(context, config),
  },
  {
    name: 'realtime',
    does: 'Serve websockets and event streams',
    needs: STORES,
    listens: true,
    start: async (context, config) => (await import('./realtime/role.ts')).start(context, config),
  },
] as const satisfies readonly Role[];

export type RoleName = (typeof ROLES)[number]['name'];

export const ROLE_NAMES: readonly RoleName[] = ROLES.map(({ name }) => name);
