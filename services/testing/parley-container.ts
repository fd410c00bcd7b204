/**
 * Parley in a container for the test suites of other projects. Only this file needs testcontainers. docs/testing.md shows
 * how to use it.
 */
import {
  AbstractStartedContainer,
  GenericContainer,
  type RestartOptions,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';

import { testParley, type TestParley } from './test-parley.ts';

const PORT = 8080;
const START_MS = 120_000;
/**
 * Equal for each container, so that `withReuse` finds one that runs; for tests alone, like their passwords of
 * databases.
 */
const TEST_KEY = 'parley-testcontainers-0123456789abcdef';

/**
 * All of Parley in a container, with an empty event store and Redis inside. Settings are environment variables:
 * `withEnvironment({ RATE_LIMIT_PER_KEY: '10' })`; by default there are no rate limits, and the API key is the same for
 * each container (`PARLEY_BOOTSTRAP_KEY`). With `EVENTSTORE_URL` or `REDIS_URL` it uses those stores, with the data in
 * them; the container must be able to reach their addresses.
 */
export class ParleyContainer extends GenericContainer {
  /** @param image built from infra/Dockerfile, such as `parley:0.1.0` */
  constructor(image: string) {
    super(image);
    this.withExposedPorts(PORT);
    this.withEnvironment({
      PARLEY_BOOTSTRAP_KEY: TEST_KEY,
      LOG_LEVEL: 'warn',
      RATE_LIMIT_PER_KEY: '0',
      RATE_LIMIT_PER_ADDRESS: '0',
    });
    this.withWaitStrategy(Wait.forHttp('/health/ready', PORT, { abortOnContainerExit: true }).forStatusCode(200));
    this.withStartupTimeout(START_MS);
  }

  /**
   * Resolves when Parley is ready. May be called again, for another container.
   *
   * @throws Error (rejects) when Docker does not answer, the image is not available, Parley ends (with what it printed), or
   *   is not ready in time; leaves nothing behind then
   */
  override async start(): Promise<StartedParleyContainer> {
    const { Labels } = this.createOpts;
    let started: StartedTestContainer | undefined;
    try {
      started = await super.start();
      const parley = await accessTo(started, this.environment['PARLEY_BOOTSTRAP_KEY'] ?? TEST_KEY);
      return Object.assign(new Started(started), parley);
    } catch (error) {
      await started?.stop();
      throw error;
    } finally {
      // The start adds labels of the container, which would be part of the next one's hash for `withReuse`.
      if (Labels === undefined) delete this.createOpts.Labels;
      else this.createOpts.Labels = Labels;
    }
  }
}

/**
 * A Parley in a container. Its `apiKey` has all scopes. `url` is for the test: other containers of the same network use its
 * alias there, and port 8080. Docker gives a container that restarts another port: `url` and `client` then change, and
 * organizations and users that were created before keep the old address.
 */
export type StartedParleyContainer = AbstractStartedContainer & TestParley;

class Started extends AbstractStartedContainer {
  override async restart(options?: Partial<RestartOptions>): Promise<void> {
    await super.restart(options);
    const { apiKey } = this as unknown as StartedParleyContainer;
    Object.assign(this, await accessTo(this.startedTestContainer, apiKey));
  }
}

function accessTo(container: StartedTestContainer, apiKey: string): Promise<TestParley> {
  return testParley({ url: `http://${container.getHost()}:${container.getMappedPort(PORT)}`, apiKey });
}
