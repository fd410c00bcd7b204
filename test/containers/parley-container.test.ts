/** ParleyContainer, as docs/testing.md shows it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { GenericContainer, Network, Wait } from 'testcontainers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildImages } from '#test/images/build.mjs';
import { PARLEY_IMAGE } from '#test/images/images.mjs';
import { ParleyContainer, type StartedParleyContainer } from '#services/testing/parley-container.ts';

const START_MS = 900_000;
const TEST_MS = 180_000;

let parley: StartedParleyContainer;

beforeAll(async () => {
  await buildImages(['parley']);
  parley = await new ParleyContainer(PARLEY_IMAGE).start();
}, START_MS);
afterAll(() => parley?.stop(), TEST_MS);

test('docs/testing.md shows the next test unchanged', async () => {
  const [text, self] = await Promise.all(
    ['../../docs/testing.md', 'parley-container.test.ts'].map((path) =>
      readFile(join(import.meta.dirname, path), 'utf8'),
    ),
  );
  const shown = /^test\('subscribers of a channel receive[^]*?^\}, 60_000\);$/m;
  expect(shown.exec(text ?? '')?.[0]).toBe(shown.exec(self ?? '')?.[0] ?? 'the test is gone');
});

test('subscribers of a channel receive the posts of a user', async () => {
  const { client, createChannel, createUser } = await parley.createOrganization();
  const ada = await createUser({ display_name: 'Ada' });
  const { id } = await createChannel({ participants: [{ type: 'authenticated_user', user_id: ada.id }] });
  await ada.client.rest.POST('/api/v1/channels/{id}/interactions', {
    params: { path: { id } },
    body: { content: [{ type: 'text', text: 'Hello!' }] },
  });
  for await (const { type, data } of client.channel(id).subscribe({ after: 0 })) {
    if (type !== 'interaction.posted') continue;
    expect(data?.content).toMatchObject([{ type: 'text', text: 'Hello!' }]);
    break;
  }
});

test('organizations are isolated from each other', { timeout: TEST_MS }, async () => {
  const [one, other] = [await parley.createOrganization(), await parley.createOrganization()];
  const { id } = await one.createChannel();
  const { response } = await other.client.rest.GET('/api/v1/channels/{id}', { params: { path: { id } } });
  expect(response.status).toBe(404);
});

test('a read-only key writes nothing', { timeout: TEST_MS }, async () => {
  const authorization = await parley.createKey({ scopes: ['read'] });
  const answer = await fetch(`${parley.url}/api/v1/channels`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'websocket', name: 'Not for readers' }),
  });
  expect(answer.status).toBe(403);
});

test('a missing image is reported', { timeout: TEST_MS }, async () => {
  await expect(new ParleyContainer('parley-local/no-such-image:1').start()).rejects.toThrow();
});

test('other containers reach it in their network; one definition starts twice', { timeout: TEST_MS }, async () => {
  await using network = await new Network().start();
  const definition = new ParleyContainer(PARLEY_IMAGE).withNetwork(network).withNetworkAliases('parley');
  await using one = await definition.start();
  expect(one.getNetworkNames()).toContain(network.getName());
  await using client = await new GenericContainer(PARLEY_IMAGE)
    .withNetwork(network)
    .withEntrypoint(['sleep'])
    .withCommand(['infinity'])
    .withWaitStrategy(Wait.forSuccessfulCommand('true'))
    .start();
  const { output } = await client.exec(['bash', '-c', 'HOST=parley bash /opt/parley/infra/health.sh; echo $?']);
  expect(output).toBe('0\n');

  await using other = await definition.start();
  expect(other.getId()).not.toBe(one.getId());
  const { id } = await one.createChannel();
  const { response } = await other.client.rest.GET('/api/v1/channels/{id}', { params: { path: { id } } });
  expect(response.status).toBe(404);
});

test('withReuse finds the container of an equal definition', { timeout: TEST_MS }, async () => {
  // A label of its own: no container of another run.
  const label = { 'parley.test.reuse': `${Date.now()}` };
  const definition = () => new ParleyContainer(PARLEY_IMAGE).withLabels(label).withReuse();
  const first = definition();
  const [one, again, other] = [await first.start(), await first.start(), await definition().start()];
  try {
    expect([again.getId(), other.getId()]).toEqual([one.getId(), one.getId()]);
    const { id } = await one.createChannel();
    const { response } = await other.client.rest.GET('/api/v1/channels/{id}', { params: { path: { id } } });
    expect(response.status).toBe(200);
  } finally {
    await one.stop();
  }
});

test('its address is right after a restart, and its data is still there', { timeout: TEST_MS }, async () => {
  await using restarted = await new ParleyContainer(PARLEY_IMAGE).start();
  const { id } = await restarted.createChannel();
  await restarted.restart();
  expect(restarted.url).toBe(`http://${restarted.getHost()}:${restarted.getMappedPort(8080)}`);
  const { response } = await restarted.client.rest.GET('/api/v1/channels/{id}', { params: { path: { id } } });
  expect(response.status).toBe(200);
  expect((await restarted.createOrganization()).url).toBe(restarted.url);
});

test('a Parley that refuses to start says why at once', async () => {
  const started = new ParleyContainer(PARLEY_IMAGE).withEnvironment({ LOG_LEVEL: 'loud' }).start();
  await expect(started).rejects.toThrow(/parley: LOG_LEVEL must be one of trace, .*; it is "loud"/);
});

test('docs/testing.md names the version of testcontainers, and the Node that it needs', async () => {
  const [text, manifest] = await Promise.all(
    ['docs/testing.md', 'node_modules/testcontainers/package.json'].map((path) =>
      readFile(join(import.meta.dirname, '../..', path), 'utf8'),
    ),
  );
  const { version, engines } = JSON.parse(manifest ?? '') as { version: string; engines: { node: string } };
  expect(text).toContain(`testcontainers@${version}`);
  const [node = ''] = /[\d.]+/.exec(engines.node) ?? [];
  expect(text?.replace(/\s+/g, ' ')).toContain(
    `testcontainers ${version.replace(/\.\d+$/, '')} itself needs Node ${node} or newer`,
  );
});
