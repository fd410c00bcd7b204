/**
 * The Redis of `REDIS_URL`, for suites that need an empty database. Each of them empties it, so a run first checks that
 * it may, and test files run one after another.
 */
import { Redis } from 'ioredis';

/** Environment variable with the URL that the run may empty, for the processes of its test files. */
const CLAIMED = 'PARLEY_TEST_REDIS_CLAIMED';
const CONNECT_MS = 10_000;

let lent = false;

/**
 * Once per run. Does nothing where `REDIS_URL` is not set.
 *
 * @throws Error when that Redis does not answer, is a cluster, or holds keys and `PARLEY_TEST_FLUSH` is not 1
 */
export async function claimNamedRedis(say: (line: string) => void): Promise<void> {
  const { REDIS_URL: url = '', PARLEY_TEST_FLUSH } = process.env;
  if (url === '') return;
  if (url.includes(','))
    throw new Error('REDIS_URL names several servers; tests take one. On a cluster: npm run test:redis-cluster');
  const keys = await onceAt(url, (client) => client.dbsize());
  const database = placeOf(url);
  if (keys > 0 && PARLEY_TEST_FLUSH !== '1') {
    throw new Error(
      `REDIS_URL: ${database} holds ${keys} keys, and tests would delete them. Name an empty database ` +
        '(redis://host:6379/9), unset REDIS_URL, or set PARLEY_TEST_FLUSH=1 if all of it may go',
    );
  }
  process.env[CLAIMED] = url;
  say(`redis: ${database} of REDIS_URL, emptied for each suite; suites that kill Redis start their own`);
}

/**
 * Empties it, and reserves it until `stop` empties it again. `undefined` where `REDIS_URL` is not set, or where this
 * process uses it already: a suite that needs a second server starts one.
 */
export async function borrowNamedRedis(): Promise<{ readonly url: string; stop(): Promise<void> } | undefined> {
  const url = process.env[CLAIMED];
  if (url === undefined || lent) return undefined;
  lent = true;
  const empty = (): Promise<unknown> => onceAt(url, (client) => client.flushdb());
  await empty();
  return {
    url,
    async stop() {
      await empty();
      lent = false;
    },
  };
}

async function onceAt<T>(url: string, call: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, connectTimeout: CONNECT_MS, retryStrategy: () => null });
  // The calls reject with the error.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await call(client);
  } catch (error) {
    throw new Error(`REDIS_URL: ${placeOf(url)}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  } finally {
    client.disconnect();
  }
}

/** Omits the password, which the URL may hold. */
function placeOf(url: string): string {
  const { host, pathname } = new URL(url);
  return `database ${pathname.replace('/', '') || '0'} of ${host}`;
}
