/** Two nodes on shared stores, each in the process of the test or in its own. */
import { createApiKey } from '#libs/platform/http/index.ts';
import type { StartParleyOptions } from '#services/testing/index.ts';
import type { ApiClient } from '#test/support/api-client.ts';
import { startTestEventStore, type TestEventStore } from '#test/support/event-store.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { startParleyHere, type ParleyHere } from '#test/support/parley-here.ts';
import { startParleyProcess, TOKEN_SECRET, type ParleyProcess } from '#test/support/parley-process.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

export interface NodeOptions {
  readonly eventstoreUrl: string;
  readonly redisUrl: string;
  readonly apiKey: string;
  /** Further environment variables. */
  readonly env?: NonNullable<StartParleyOptions['settings']>;
}

/** Resolves when the node is ready. */
export type StartNode<Node extends ParleyHere> = (options: NodeOptions) => Promise<Node>;

/** In the process of the test. */
export const startNodeHere: StartNode<ParleyHere> = ({ eventstoreUrl, redisUrl, apiKey, env }) =>
  startParleyHere({
    EVENTSTORE_URL: eventstoreUrl,
    REDIS_URL: redisUrl,
    PARLEY_BOOTSTRAP_KEY: apiKey,
    PARLEY_TOKEN_SECRET: TOKEN_SECRET,
    ...env,
  });

/** In a process of its own, which can be killed and whose log can be read. */
export const startNodeProcess: StartNode<ParleyProcess> = async (options) => {
  const node = await startParleyProcess(options);
  try {
    await node.ready();
    return node;
  } catch (error) {
    await node.stop();
    throw error;
  }
};

export interface TwoNodes<Other extends ParleyHere = ParleyHere> {
  readonly eventStore: TestEventStore;
  readonly redis: TestRedis;
  /** Everything, in the process of the test. */
  readonly one: ParleyHere;
  /** Serves requests and sockets, and nothing else. */
  readonly other: Other;
  stop(): Promise<void>;
}

/** @param env further environment variables of both */
export async function startTwoNodes<Other extends ParleyHere>(
  startOther: StartNode<Other>,
  env: NodeOptions['env'] = {},
): Promise<TwoNodes<Other>> {
  const [eventStore, redis] = await Promise.all([startTestEventStore(), startTestRedis()]);
  const nodes: ParleyHere[] = [];
  const stop = async (): Promise<void> => {
    try {
      await Promise.all(nodes.map((node) => node.stop()));
    } finally {
      await Promise.all([eventStore.stop(), redis.stop()]);
    }
  };
  const shared = { eventstoreUrl: eventStore.url, redisUrl: redis.url, apiKey: createApiKey() };
  try {
    const one = await startNodeHere({ ...shared, env });
    nodes.push(one);
    const other = await startOther({ ...shared, env: { ...env, ROLES: 'gateway,realtime' } });
    nodes.push(other);
    return { eventStore, redis, one, other, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

export async function newChannel(api: ApiClient, body: object = {}): Promise<string> {
  const reply = await api.post('/api/v1/channels', { type: 'websocket', name: 'A channel', ...body });
  if (reply.status !== 200) throw new Error(`no channel: ${reply.status} ${reply.text}`);
  return String(asRecord(reply.json())['id']);
}

/** @returns its sequence */
export async function post(api: ApiClient, channelId: string, text: string): Promise<number> {
  const reply = await api.post(`/api/v1/channels/${channelId}/interactions`, { content: [{ type: 'text', text }] });
  if (reply.status !== 200) throw new Error(`not posted: ${reply.status} ${reply.text}`);
  return Number(asRecord(reply.json())['sequence']);
}
