/** Two nodes on shared stores, each a process of its own, that can be killed one by one. */
import type { ApiClient } from '#test/support/api-client.ts';
import { startTestEventStore, type TestEventStoreProcess } from '#test/support/event-store.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { startTestRedis, type TestRedis } from '#test/support/redis.ts';

export interface TwoNodes {
  readonly eventStore: TestEventStoreProcess;
  readonly redis: TestRedis;
  /** Everything in one process. */
  readonly one: ParleyProcess;
  /** Serves requests and sockets, and nothing else. */
  readonly other: ParleyProcess;
  stop(): Promise<void>;
}

/** @param env further environment variables of both */
export async function startTwoNodes(env: Readonly<Record<string, string>> = {}): Promise<TwoNodes> {
  const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
  const nodes: ParleyProcess[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node.stop()));
    await Promise.all([eventStore.stop(), redis.stop()]);
  };
  const stores = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
  try {
    const one = await startParleyProcess({ ...stores, env });
    nodes.push(one);
    const other = await startParleyProcess({
      ...stores,
      apiKey: one.apiKey,
      env: { ...env, ROLES: 'gateway,realtime' },
    });
    nodes.push(other);
    await Promise.all([one.ready(), other.ready()]);
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
