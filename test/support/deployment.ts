/**
 * A whole deployment of Parley: every role in processes of its own, beside its stores. All of them can be made to
 * fail.
 */
import { createApiKey } from '#libs/platform/http/index.ts';
import type { RoleName } from '#services/roles.ts';
import type { ApiClient } from './api-client.ts';
import { startTestEventStore, type TestEventStoreProcess } from './event-store.ts';
import { startTestKafkaProcess, type TestKafkaProcess } from './kafka/broker.ts';
import { startParleyProcess, type ParleyProcess } from './parley-process.ts';
import { startTestRedis } from './redis.ts';
import { startTestRedisPair, type TestRedisPair } from './redis-pair.ts';

type Pair = readonly [ParleyProcess, ParleyProcess];

export interface Deployment {
  readonly eventStore: TestEventStoreProcess;
  /** A cluster, which `PARLEY_TEST_REDIS` selects, has no failover here. */
  readonly redis: Omit<TestRedisPair, 'failover'> & Partial<TestRedisPair>;
  readonly kafka: TestKafkaProcess;
  readonly gateways: Pair;
  readonly realtime: Pair;
  readonly projectors: readonly [ParleyProcess, ParleyProcess, ParleyProcess];
  readonly relays: Pair;
  /** Key of the first organization, which all gateways accept. */
  readonly apiKey: string;
  /** Secret that signs messages between the processes. */
  readonly tokenSecret: string;
  /** Clients of both gateways with another key. */
  withKey(apiKey: string): readonly [ApiClient, ApiClient];
  /** Output of all processes. */
  output(): string;
  /** Ends everything, whatever its state, and removes its data. */
  stop(): Promise<void>;
}

const TOKEN_SECRET = 'a secret that the processes of a deployment share';

/**
 * Two gateways, two realtime nodes, three projectors and two relays on an event store, a Redis and a Kafka broker.
 * Resolves when every process reports that it is ready. Stops the running parts when one fails to start.
 */
export async function startDeployment(): Promise<Deployment> {
  const parts: { stop(): Promise<unknown> }[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(parts.splice(0).map((part) => part.stop()));
  };
  const started = async <T extends { stop(): Promise<unknown> }>(starting: Promise<T>): Promise<T> => {
    const part = await starting;
    parts.push(part);
    return part;
  };
  try {
    // Parts that started although another one failed are stopped too.
    const [eventStore, redis, kafka] = await allSettled([
      started(startTestEventStore({ mode: 'process' })),
      started(process.env['PARLEY_TEST_REDIS'] === 'cluster' ? startTestRedis() : startTestRedisPair()),
      started(startTestKafkaProcess()),
    ] as const);
    const apiKey = createApiKey();
    const start = (role: RoleName, env: Readonly<Record<string, string>> = {}): Promise<ParleyProcess> =>
      started(
        startParleyProcess({
          eventstoreUrl: eventStore.url,
          redisUrl: redis.url,
          apiKey,
          role,
          env: { PARLEY_TOKEN_SECRET: TOKEN_SECRET, ...env },
        }),
      );
    const fed = { KAFKA_BROKERS: kafka.brokers.join(',') };
    const processes = await allSettled([
      start('gateway'),
      start('gateway'),
      start('realtime'),
      start('realtime'),
      start('projector', fed),
      start('projector', fed),
      start('projector', fed),
      start('relay', fed),
      start('relay', fed),
    ] as const);
    await Promise.all(processes.map((process) => process.ready()));
    const [g1, g2, n1, n2, p1, p2, p3, r1, r2] = processes;
    return {
      eventStore,
      redis,
      kafka,
      apiKey,
      tokenSecret: TOKEN_SECRET,
      gateways: [g1, g2],
      realtime: [n1, n2],
      projectors: [p1, p2, p3],
      relays: [r1, r2],
      withKey: (key) => [g1.api.withKey(key), g2.api.withKey(key)],
      output: () => processes.map((process) => process.output()).join('\n'),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Like `Promise.all`, but settles only after all promises have. */
async function allSettled<const T extends readonly Promise<unknown>[]>(starting: T) {
  await Promise.allSettled(starting);
  return Promise.all(starting);
}
