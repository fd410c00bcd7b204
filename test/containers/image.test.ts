/** The image of infra/Dockerfile, run as restrictive orchestrators run it. */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  GenericContainer,
  getContainerRuntimeClient,
  ImageName,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildImages } from '#test/images/build.mjs';
import { PARLEY_IMAGE } from '#test/images/images.mjs';
import { eventually } from '#test/support/eventually.ts';

const BUILD_MS = 900_000;
const START_MS = 120_000;
/** With a Node of 127 MB and Debian's base of 80 MB. The limit reveals files that were added by accident. */
const LARGEST = 260_000_000;

/** As OpenShift runs it: a user that the image does not know, nothing to write to beside volumes, no capabilities. */
class HardenedContainer extends GenericContainer {
  constructor(user = '12345:0') {
    super(PARLEY_IMAGE);
    this.hostConfig.ReadonlyRootfs = true;
    // A new volume takes owner and mode of the image's folder.
    this.withUser(user)
      .withTmpFs({ '/tmp': 'mode=1777' })
      .withDroppedCapabilities('ALL')
      .withSecurityOpt('no-new-privileges')
      .withExposedPorts(8080)
      .withWaitStrategy(Wait.forHealthCheck())
      .withStartupTimeout(START_MS);
  }
}

let parley: StartedTestContainer;
let url: string;
beforeAll(async () => {
  await buildImages(['parley']);
  parley = await new HardenedContainer().start();
  url = `http://${parley.getHost()}:${parley.getMappedPort(8080)}`;
}, BUILD_MS);
afterAll(() => parley?.stop(), START_MS);

/** Standard output and standard error of a container until now. */
async function logOf(container: StartedTestContainer): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)('docker', ['logs', container.getId()], { maxBuffer: 1e8 });
  return stdout + stderr;
}

function sh(container: StartedTestContainer, script: string) {
  return container.exec(['sh', '-c', script]);
}

describe('the image of Parley', { timeout: START_MS }, () => {
  it('is ready with its own stores as a foreign user of group 0, on a read-only root file system', async () => {
    const identity = await sh(parley, 'id -u; touch /opt/parley/x 2>&1; touch /x 2>&1; grep CapEff /proc/1/status');
    expect(identity.output.split('\n')[0]).toBe('12345');
    expect(identity.output.match(/Read-only file system/g)).toHaveLength(2);
    expect(identity.output).toMatch(/CapEff:\s+0{16}/);
    await eventually(async () => expect((await fetch(`${url}/health/ready`)).status).toBe(200));
  });

  it('logs lines of JSON alone, and keeps the generated key in a file of the volume', async () => {
    const lines = (await logOf(parley)).trim().split('\n');
    const started = lines.map((line) => JSON.parse(line) as Record<string, unknown>).find(({ keyFile }) => keyFile);
    expect(started).toMatchObject({ keyFile: '/data/first-key', dataDir: '/data' });
    expect(lines.join('\n')).not.toContain('parley_live_');
    const { output } = await sh(parley, 'stat -c %a /data/first-key && cat /data/first-key');
    const [mode, key] = output.trim().split('\n');
    expect(mode).toBe('600');
    const answer = await fetch(`${url}/api/v1/keys`, { headers: { authorization: `${key}` } });
    expect(answer.status).toBe(200);
  });

  it('administers the running server by the command `parley`', async () => {
    const { output, exitCode } = await parley.exec(['parley', 'keys', 'create', '--quiet']);
    expect({ output, exitCode }).toEqual({ output: expect.stringMatching(/^parley_live_\w+\n$/), exitCode: 0 });
    const answer = await fetch(`${url}/api/v1/channels`, { headers: { authorization: output.trim() } });
    expect(answer.status).toBe(200);
  });

  it('holds the runtime, and nothing that a server does not need', async () => {
    const { output } = await sh(
      parley,
      `cd /opt/parley && ls -a && find libs services infra -name '*.test.ts' && ls node_modules | grep -E '^(vitest|typescript|prettier|oxlint|testcontainers|node)$'; command -v npm npx yarn corepack;
       find node_modules -name '*.map' -o -name '*.d.ts' -o -iname 'readme*' -o -name '*musl*.node' -o -name '*.abi[0-9]*.node'`,
    );
    expect(output.split('\n').filter(Boolean).toSorted()).toEqual(
      ['.', '..', 'infra', 'libs', 'node_modules', 'package.json', 'services'].toSorted(),
    );
    // Licences of packages must be distributed with them.
    expect((await sh(parley, 'ls node_modules/*/LICENSE* | wc -l')).output.trim()).toMatch(/^\d{2,}$/);
  });

  it('is no larger than necessary, and says what it is', async () => {
    const { image } = await getContainerRuntimeClient();
    const { Size, Config } = await image.inspect(ImageName.fromString(PARLEY_IMAGE));
    process.stderr.write(`${PARLEY_IMAGE}: ${Math.round(Size / 1e6)} MB\n`);
    expect(Size).toBeGreaterThan(0);
    expect(Size).toBeLessThan(LARGEST);
    const manifest = JSON.parse(await readFile(join(import.meta.dirname, '../../package.json'), 'utf8'));
    expect(Config.Labels).toMatchObject({
      'org.opencontainers.image.version': manifest.version,
      'org.opencontainers.image.revision': expect.stringMatching(/^[0-9a-f]{40}$/),
      'org.opencontainers.image.source': expect.any(String),
      'org.opencontainers.image.licenses': 'LicenseRef-Proprietary',
    });
  });

  it.each([
    ['another port', { PORT: '9191' }],
    ['a free port', { PORT: '0' }],
    ['one address', { HOST: '127.0.0.1' }],
    ['the address of the container', { HOST: 'localhost', PORT: '9192' }],
  ])('is healthy on %s', async (_, environment) => {
    const other = await new HardenedContainer('1000:0').withEnvironment(environment).start();
    const check = 'bash /opt/parley/infra/health.sh';
    expect((await sh(other, `${check} && ${check} /health/ready && echo healthy`)).output).toBe('healthy\n');
    // The check can fail.
    expect((await sh(other, `PORT=1 ${check} || ${check} /no/such/page || echo unhealthy`)).output).toMatch(
      /unhealthy/,
    );
    await other.stop();
  });

  it('takes secrets from files, and names a file that is missing', async () => {
    const key = 'key-of-a-file_0123456789-0123456789-0123456789';
    const given = { PARLEY_BOOTSTRAP_KEY_FILE: '/run/secrets/key' };
    const other = await new GenericContainer(PARLEY_IMAGE)
      .withCopyContentToContainer([{ content: `${key}\n`, target: '/run/secrets/key' }])
      .withEnvironment(given)
      .withExposedPorts(8080)
      .withWaitStrategy(Wait.forHttp('/health/ready', 8080).forStatusCode(200))
      .start();
    const address = `http://${other.getHost()}:${other.getMappedPort(8080)}`;
    expect((await fetch(`${address}/api/v1/keys`, { headers: { authorization: key } })).status).toBe(200);
    expect((await other.exec(['parley', 'config'])).output).toMatch(/^PARLEY_BOOTSTRAP_KEY +\*+ +file /m);
    await other.stop();
    const run = promisify(execFile)('docker', ['run', '--rm', '-e', 'REDIS_URL_FILE=/run/secrets/redis', PARLEY_IMAGE]);
    await expect(run).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^parley: REDIS_URL_FILE cannot be used: .*\/run\/secrets\/redis.*\n$/),
    });
  });

  it.each([
    [384, 4, 4_000, 32],
    // More than the private Redis has room for.
    [384, 40, 2_600, 16],
    [512, 12, 3_000, 64],
    [512, 240, 150, 64],
  ])(
    'survives within %i MiB posts of %i KB: %i by %i writers',
    { timeout: 300_000 },
    async (mib, size, posts, writers) => {
      const key = 'key-of-the-load_0123456789-0123456789-0123456789';
      const small = await new GenericContainer(PARLEY_IMAGE)
        .withEnvironment({ PARLEY_BOOTSTRAP_KEY: key, RATE_LIMIT_PER_KEY: '0', RATE_LIMIT_PER_ADDRESS: '0' })
        .withResourcesQuota({ memory: mib / 1024 })
        .withExposedPorts(8080)
        .withWaitStrategy(Wait.forHealthCheck())
        .start();
      const api = `http://${small.getHost()}:${small.getMappedPort(8080)}/api/v1/channels`;
      const post = async (path: string, body: object) => {
        const headers = { authorization: key, 'content-type': 'application/json' };
        // A refusal names itself, and the request may be sent again.
        for (;;) {
          const answer = await fetch(`${api}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
          if (answer.status !== 503) return { status: answer.status, json: (await answer.json()) as { id: string } };
          await pause(Number(answer.headers.get('retry-after')) * 1_000);
        }
      };
      const statuses = new Map<number, number>();
      const { id } = (await post('', { name: 'Load' })).json;
      let next = 0;
      // A text has at most 128 Ki characters.
      const items = Math.ceil(size / 120);
      const item = () => ({ type: 'text', text: randomBytes((size * 500) / items).toString('hex') });
      const writer = async (): Promise<void> => {
        while (next++ < posts) await post(`/${id}/interactions`, { content: Array.from({ length: items }, item) });
      };
      await Promise.all(Array.from({ length: writers }, writer));
      expect(statuses.get(200)).toBe(posts + 1);
      expect([...statuses.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
      expect((await fetch(new URL('/health/live', api))).status).toBe(200);
      const { output } = await sh(
        small,
        'cat /sys/fs/cgroup/memory.peak /sys/fs/cgroup/memory/memory.max_usage_in_bytes',
      );
      process.stderr.write(
        `memory of ${posts} posts of ${size} KB within ${mib} MiB, at most: ${Math.round(Number(/\d+/.exec(output)) / 1e6)} MB; ${statuses.get(503) ?? 0} refused\n`,
      );
      const { container } = await getContainerRuntimeClient();
      expect((await container.inspect(container.getById(small.getId()))).State.OOMKilled).toBe(false);
      await small.stop();
    },
  );

  // The last one: it ends the container of the others.
  it('stops at SIGTERM with exit code 0', async () => {
    const { container } = await getContainerRuntimeClient();
    const raw = container.getById(parley.getId());
    await raw.kill({ signal: 'SIGTERM' });
    expect(await raw.wait()).toMatchObject({ StatusCode: 0 });
  });
});
