/**
 * Two gateways with sockets, each of which can lose Redis alone, and a projector. All of them can be paused or
 * killed.
 */
import { pino } from 'pino';
import { waitForRedis } from '#libs/platform/redis/index.ts';
import { openPlatform } from '#libs/platform/runtime/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { composeReadModels } from '#services/features.ts';
import { rebuild } from '#services/projector/rebuild.ts';
import { startCutProxy, type CutProxy } from './cut-proxy.ts';
import { startTestEventStore, type TestEventStoreProcess } from './event-store.ts';
import { startParleyProcess, type ParleyProcess } from './parley-process.ts';
import { startTestRedis, type TestRedis } from './redis.ts';

export interface Gateway {
  readonly name: string;
  readonly process: ParleyProcess;
  /** Proxy between the gateway and Redis. */
  readonly redis: CutProxy;
  /** By `performance.now()`; Infinity during a restart. */
  startedAtMs: number;
}

/** A failure around the end of a key. */
export interface Failure {
  readonly name: string;
  /** @param other the gateway that does not end the key */
  before?(at: Gateway, other: Gateway): Promise<void> | void;
  after?(at: Gateway, other: Gateway): Promise<void> | void;
  /** Whether the gateway that ends the key cannot announce it. */
  readonly unannounced?: boolean;
}

export class KeyStage {
  readonly eventStore: TestEventStoreProcess;
  readonly redis: TestRedis;
  readonly projector: ParleyProcess;
  readonly gateways: readonly [Gateway, Gateway];
  /** Work that runs beside the rounds. */
  readonly running: Promise<void>[] = [];

  private constructor(stores: Stores, projector: ParleyProcess, gateways: readonly [Gateway, Gateway]) {
    this.eventStore = stores.eventStore;
    this.redis = stores.redis;
    this.projector = projector;
    this.gateways = gateways;
  }

  static async start(): Promise<KeyStage> {
    const [eventStore, redis] = await Promise.all([startTestEventStore({ mode: 'process' }), startTestRedis()]);
    const stores = { eventStore, redis };
    const urls = { eventstoreUrl: eventStore.url, redisUrl: redis.url };
    const projector = await startParleyProcess({ role: 'projector', ...urls });
    const one = await startGateway(stores, 'one');
    const stage = new KeyStage(stores, projector, [one, await startGateway(stores, 'two', one.process.apiKey)]);
    await Promise.all([projector.ready(), stage.ready()]);
    return stage;
  }

  async ready(): Promise<void> {
    await Promise.all(this.gateways.map(({ process }) => process.ready()));
  }

  async stop(): Promise<void> {
    this.projector.resume();
    for (const { redis } of this.gateways) redis.speak();
    await Promise.all([this.projector, ...this.gateways.map(({ process }) => process)].map((each) => each.stop()));
    await Promise.all(this.gateways.map(({ redis }) => redis.stop()));
    await Promise.all([this.eventStore.stop(), this.redis.stop()]);
  }

  readonly failures: readonly [Failure, ...Failure[]] = [
    {
      name: 'Redis silent for the other gateway',
      before: (_, other) => other.redis.silence(),
      after: (_, other) => other.redis.speak(),
    },
    {
      name: 'no Redis for the gateway that ends the key, projector paused, the other gateway restarted',
      unannounced: true,
      before: (at) => {
        this.projector.pause();
        at.redis.silence();
        at.redis.cut();
      },
      after: async (at, other) => {
        await restart(other);
        at.redis.speak();
      },
    },
    {
      name: 'Redis emptied after it, both gateways restarted',
      after: async (at, other) => {
        await this.redis.command('FLUSHALL');
        await Promise.all([restart(at), restart(other)]);
      },
    },
    { name: 'nothing' },
    {
      name: 'a rebuild after it, beside a gateway that was restarted',
      after: async (_, other) => {
        this.running.push(this.#rebuild());
        await restart(other);
      },
    },
    { name: 'the other gateway restarted', after: (_, other) => restart(other) },
    { name: 'connections to Redis cut', before: (_, other) => void other.redis.cut() },
    {
      name: 'Redis emptied, projector paused, the other gateway restarted',
      before: async () => {
        this.projector.pause();
        await this.redis.command('FLUSHALL');
      },
      after: (_, other) => restart(other),
    },
  ];

  /** As `npx parley rebuild` does it beside a running Parley. */
  async #rebuild(): Promise<void> {
    const platform = await openPlatform({
      eventstoreUrl: this.eventStore.url,
      redisUrl: this.redis.url,
      log: pino({ level: 'silent' }),
      metrics: createMetrics({ processMetrics: false }),
      tokenSecret: 'a secret of this test only',
    });
    await waitForRedis(platform.redis, 60_000);
    await rebuild({ feed: platform.feed, ...composeReadModels(platform) }, { signal: new AbortController().signal });
    await platform.close();
  }
}

type Stores = Pick<KeyStage, 'eventStore' | 'redis'>;

async function startGateway({ eventStore, redis }: Stores, name: string, apiKey?: string): Promise<Gateway> {
  const target = new URL(redis.url);
  const proxy = await startCutProxy(`http://${target.host}`);
  const process = await startParleyProcess({
    eventstoreUrl: eventStore.url,
    redisUrl: `redis://${target.username}:${target.password}@${new URL(proxy.baseUrl).host}`,
    env: { ROLES: 'gateway,realtime' },
    ...(apiKey !== undefined && { apiKey }),
  });
  return { name, process, redis: proxy, startedAtMs: performance.now() };
}

async function restart(gateway: Gateway): Promise<void> {
  gateway.startedAtMs = Infinity;
  await gateway.process.kill9();
  const startedAtMs = performance.now();
  await gateway.process.start();
  gateway.startedAtMs = startedAtMs;
}
