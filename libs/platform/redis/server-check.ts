import type { Redis } from 'ioredis';

import { RIGHTS_PROBE } from './rights.keys.ts';

/** Properties of a server that Parley needs; null for those that the server does not name. */
export interface ServerDescription {
  /** `standalone`, `cluster` or `sentinel`. */
  readonly mode: string | null;
  /** Of Redis, or of the Redis that the server is compatible with. */
  readonly version: string | null;
  readonly hasFunctions: boolean;
  /** Number of the database that the connection uses. */
  readonly database: number | null;
}

/** A name that no library has. */
const NO_LIBRARY = 'parley-none';

/** The first version with functions. */
const OLDEST = 7;

/** Never rejects: a user may lack the right to ask. */
export async function describeServer(redis: Redis): Promise<ServerDescription> {
  const [info, client, functions] = await Promise.all([
    redis.info('server').catch(() => ''),
    redis.client('INFO').catch(() => ''),
    redis.call('FUNCTION', 'LIST', 'LIBRARYNAME', NO_LIBRARY).catch((error: unknown) => error),
  ]);
  const database = /\bdb=(\d+)/.exec(String(client))?.[1];
  return {
    database: database === undefined ? null : Number(database),
    // Valkey says `server_mode`.
    mode: /^(?:redis|server)_mode:(\w+)/m.exec(info)?.[1] ?? null,
    version: /^redis_version:([\d.]+)/m.exec(info)?.[1] ?? null,
    hasFunctions: !(functions instanceof Error && /unknown command/i.test(functions.message)),
  };
}

/**
 * @param database its number, as configured
 * @returns why the server at the configured address can never be used as configured; null if it can
 */
export function misfitOf(server: ServerDescription, expected: 'standalone' | 'cluster', database = 0): string | null {
  const { mode, version, hasFunctions } = server;
  if (mode === 'sentinel') {
    return 'this is a Redis Sentinel, which Parley does not ask for the current master; give an address that follows the master, such as that of a proxy or a service';
  }
  if (version !== null && Number.parseInt(version, 10) < OLDEST) {
    return `this server is Redis ${version}, and Parley needs Redis ${OLDEST}.0 or newer, or a server that is compatible with it`;
  }
  if (!hasFunctions)
    return 'this server has no functions (FUNCTION, FCALL), which Parley needs; use Redis 7.0 or newer, or Valkey';
  if (expected === 'standalone' && mode === 'cluster') {
    return 'one address is a single server, and this one is a node of a Redis Cluster; give several of its nodes, or this one twice, separated by a comma';
  }
  // ioredis would use database 0, which may hold data of another application.
  if (server.database !== null && server.database !== database) {
    return `the server has no database ${database}, the number at the end of the address`;
  }
  if (expected === 'cluster' && mode === 'standalone') {
    return 'several addresses are nodes of a Redis Cluster, and there is a server that is in none; give the address of one server alone';
  }
  return null;
}

/** Commands of each kind that Parley sends, on keys and a topic that nothing uses. */
const NEEDED_RIGHTS: readonly (readonly [command: string, ...words: string[]])[] = [
  ['GET', RIGHTS_PROBE],
  ['PUBLISH', RIGHTS_PROBE, ''],
  ['SPUBLISH', RIGHTS_PROBE, ''],
  ['FUNCTION', 'LIST', 'LIBRARYNAME', NO_LIBRARY],
  // There is no such function, which the server says only to a user with the right.
  ['FCALL', NO_LIBRARY, '1', RIGHTS_PROBE],
];

/** @returns the reply of the server for a right that the user of Parley lacks; null if none is missing, or none answers */
export async function missingRight(redis: Redis): Promise<string | null> {
  const replies: unknown[] = await Promise.all(
    NEEDED_RIGHTS.map(([command, ...words]) => redis.call(command, ...words).catch((error: unknown) => error)),
  );
  const refusal = replies.find((reply) => reply instanceof Error && reply.message.startsWith('NOPERM'));
  return refusal instanceof Error ? refusal.message : null;
}
