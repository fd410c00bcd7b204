import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { generatedTypes } from '#test/client-types/generated-types.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
beforeAll(async () => (api = await startTestApi()));
afterAll(() => api.stop());

it("the client's types match the API and its frames (npm run client:generate writes them)", async () => {
  const { json } = await api.call({ method: 'GET', url: '/openapi.json' });
  const stale: string[] = [];
  const files = await generatedTypes(json);
  for (const { path, text } of files) if ((await readFile(path, 'utf8')) !== text) stale.push(basename(path));
  expect(files).toHaveLength(2);
  expect(stale).toEqual([]);
});

it('a change of the API changes the types', async () => {
  const { json } = await api.call({ method: 'GET', url: '/openapi.json' });
  const changed = structuredClone(json);
  changed.components.schemas.Channel.properties.weather = { type: 'string' };
  const [before, after] = await Promise.all([generatedTypes(json), generatedTypes(changed)]);
  expect(after[0]?.text).not.toBe(before[0]?.text);
  expect(after[0]?.text).toContain('weather?: string;');
});
