/**
 * Parley in a container for the test suites of other projects. Only this file needs testcontainers. docs/testing.md shows
 * how to use it.
 */
import { randomBytes } from 'node:crypto';
import { AbstractStartedContainer, GenericContainer, Network, Wait } from 'testcontainers';
import type { StartedNetwork, StartedTestContainer, StopOptions, StoppedTestContainer } from 'testcontainers';

import { testParley, type TestParley } from './test-parley.ts';

const PORT = 8080;
const START_MS = 120_000;

/** To be removed when Parley stops: the Redis that was started with it, and the network between them. */
interface Beside {
  readonly network: StartedNetwork;
  readonly redis: StartedTestContainer;
}

/**
 * All of Parley in a container, with an empty embedded event store inside and a Redis container beside it. Settings are
 * environment variables: `withEnvironment({ RATE_LIMIT_PER_KEY: '10' })`; by default there are no rate limits.
 * With `EVENTSTORE_URL` or `REDIS_URL` it uses those stores, with the data in them; the container must be able to reach
 * their addresses.
 */
export class ParleyContainer extends GenericContainer {
  #redisImage = 'redis:7.4-bookworm';

  /** @param image built from infra/Dockerfile, such as `parley:0.1.0` */
  constructor(image: string) {
    super(image);
    this.withExposedPorts(PORT);
    this.withEnvironment({ LOG_LEVEL: 'warn', RATE_LIMIT_PER_KEY: '0', RATE_LIMIT_PER_ADDRESS: '0' });
    this.withWaitStrategy(Wait.forHttp('/health/ready', PORT).forStatusCode(200));
    this.withStartupTimeout(START_MS);
  }

  /** Redis 7 or newer. */
  withRedisImage(image: string): this {
    this.#redisImage = image;
    return this;
  }

  /**
   * Resolves when Parley is ready.
   *
   * @throws Error (rejects) when Docker does not answer, an image is not available, or Parley is not ready in time;
   *   leaves nothing behind then
   */
  override async start(): Promise<StartedParleyContainer> {
    const apiKey = this.environment['PARLEY_BOOTSTRAP_KEY'] ?? randomBytes(32).toString('hex');
    this.withEnvironment({ PARLEY_BOOTSTRAP_KEY: apiKey });
    const beside = this.environment['REDIS_URL'] === undefined ? await this.#startBeside() : undefined;
    let started: StartedTestContainer | undefined;
    try {
      started = await super.start();
      const url = `http://${started.getHost()}:${started.getMappedPort(PORT)}`;
      return Object.assign(new Started(started, beside), await testParley({ url, apiKey }));
    } catch (error) {
      await started?.stop();
      await end(beside);
      throw error;
    }
  }

  async #startBeside(): Promise<Beside> {
    const network = await new Network().start();
    const password = randomBytes(12).toString('hex');
    try {
      const redis = await new GenericContainer(this.#redisImage)
        .withNetwork(network)
        .withNetworkAliases('redis')
        .withCommand(['redis-server', '--requirepass', password, '--save', '', '--maxmemory-policy', 'noeviction'])
        .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
        .start();
      this.withNetwork(network).withEnvironment({ REDIS_URL: `redis://:${password}@redis:6379` });
      return { network, redis };
    } catch (error) {
      await network.stop();
      throw error;
    }
  }
}

/**
 * A Parley in a container. Its `apiKey` has all scopes. `url` is for the test; another container needs a network that both
 * share. `stop` also stops the Redis that was started with it, and leaves nothing behind.
 */
export type StartedParleyContainer = AbstractStartedContainer & TestParley;

class Started extends AbstractStartedContainer {
  readonly #beside: Beside | undefined;

  constructor(started: StartedTestContainer, beside: Beside | undefined) {
    super(started);
    this.#beside = beside;
  }

  override async stop(options?: Partial<StopOptions>): Promise<StoppedTestContainer> {
    const stopped = await super.stop(options);
    await end(this.#beside);
    return stopped;
  }
}

async function end(beside: Beside | undefined): Promise<void> {
  if (beside === undefined) return;
  await beside.redis.stop();
  await beside.network.stop();
}
