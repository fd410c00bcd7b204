/** ParleyContainer, as docs/testing.md shows it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildImages } from '#test/images/build.mjs';
import { PARLEY_IMAGE } from '#test/images/images.mjs';
import { ParleyContainer } from '#services/testing/parley-container.ts';
import type { StartedParleyContainer } from '#services/testing/parley-container.ts';
import { chooseStore } from '#test/support/stores/choice.ts';

const START_MS = 900_000;
const TEST_MS = 120_000;

let parley: StartedParleyContainer;

beforeAll(async () => {
  await buildImages(['parley']);
  const redis = await chooseStore('redis');
  if (redis.from !== 'container') throw new Error('these tests need an image of Redis');
  parley = await new ParleyContainer(PARLEY_IMAGE).withRedisImage(redis.image).start();
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
}, 60_000);

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

test('a missing image is reported, and leaves nothing behind', { timeout: TEST_MS }, async () => {
  await expect(
    new ParleyContainer('parley-local/no-such-image:1').withRedisImage('parley-local/redis:0').start(),
  ).rejects.toThrow();
});
