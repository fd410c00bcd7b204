/** The image of infra/Dockerfile, run as a restrictive orchestrator runs it. */
import { GenericContainer, getContainerRuntimeClient, ImageName, Network, Wait } from 'testcontainers';
import type { StartedNetwork, StartedTestContainer } from 'testcontainers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildImages } from '#test/images/build.mjs';
import { PARLEY_IMAGE } from '#test/images/images.mjs';
import { chooseStore } from '#test/support/stores/choice.ts';

const BUILD_MS = 900_000;
const START_MS = 120_000;
/** With a Node of 127 MB and Debian's base of 80 MB. The limit reveals files that were added by accident. */
const LARGEST = 310_000_000;

let network: StartedNetwork;
let redis: StartedTestContainer;
let parley: StartedTestContainer;

beforeAll(async () => {
  await buildImages(['parley']);
  const store = await chooseStore('redis');
  if (store.from !== 'container') throw new Error('these tests need an image of Redis');
  network = await new Network().start();
  redis = await new GenericContainer(store.image)
    .withNetwork(network)
    .withNetworkAliases('redis')
    .withCommand(['redis-server', '--requirepass', 'a-password'])
    .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
    .start();
  parley = await new HardenedContainer(PARLEY_IMAGE)
    .withNetwork(network)
    .withEnvironment({ REDIS_URL: 'redis://:a-password@redis:6379' })
    .withTmpFs({ '/data': 'uid=1000,gid=1000', '/tmp': 'mode=1777' })
    .withDroppedCapabilities('ALL')
    .withSecurityOpt('no-new-privileges')
    .withExposedPorts(8080)
    .withWaitStrategy(Wait.forHttp('/health/ready', 8080).forStatusCode(200))
    .withStartupTimeout(START_MS)
    .start();
}, BUILD_MS);
afterAll(async () => {
  await parley?.stop();
  await redis?.stop();
  await network?.stop();
}, START_MS);

class HardenedContainer extends GenericContainer {
  constructor(image: string) {
    super(image);
    this.hostConfig.ReadonlyRootfs = true;
  }
}

describe('the image of Parley', () => {
  it('is ready as an unprivileged user, on a read-only root file system', async () => {
    const identity = await parley.exec([
      'sh',
      '-c',
      'id -u; touch /opt/parley/x 2>&1; touch /x 2>&1; grep CapEff /proc/1/status',
    ]);
    expect(identity.output.split('\n')[0]).toBe('1000');
    expect(identity.output.match(/Read-only file system/g)).toHaveLength(2);
    expect(identity.output).toMatch(/CapEff:\s+0{16}/);
    const answer = await fetch(`http://${parley.getHost()}:${parley.getMappedPort(8080)}/health/ready`);
    expect(answer.status).toBe(200);
  });

  it('holds the runtime, and no build tools or tests', async () => {
    const { output } = await parley.exec([
      'sh',
      '-c',
      'cd /opt/parley && ls -a; find libs services infra -name "*.test.ts"; ls node_modules | grep -E "^(vitest|typescript|prettier|oxlint|testcontainers|node)$"',
    ]);
    expect(output.split('\n').filter(Boolean).toSorted()).toEqual(
      ['.', '..', 'infra', 'libs', 'node_modules', 'package.json', 'services'].toSorted(),
    );
  });

  it('is no larger than necessary', async () => {
    const { image } = await getContainerRuntimeClient();
    const { Size } = await image.inspect(ImageName.fromString(PARLEY_IMAGE));
    process.stderr.write(`${PARLEY_IMAGE}: ${Math.round(Size / 1e6)} MB\n`);
    expect(Size).toBeGreaterThan(0);
    expect(Size).toBeLessThan(LARGEST);
  });

  // The last one: it ends the container of the others.
  it('stops at SIGTERM with exit code 0', async () => {
    const { container } = await getContainerRuntimeClient();
    const raw = container.getById(parley.getId());
    await raw.kill({ signal: 'SIGTERM' });
    expect(await raw.wait()).toMatchObject({ StatusCode: 0 });
  });
});
