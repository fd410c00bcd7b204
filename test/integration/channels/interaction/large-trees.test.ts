/* The tree of an interaction may be larger than any answer. */
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type Answer, type Call, startTestApi, type TestApi } from '#test/support/test-api.ts';

const MIB = 1024 * 1024;
const LARGE = 90;
const TEXT = 'x'.repeat(100_000);

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.stop());

function call(method: Call['method'], url: string, body?: object): Promise<Answer> {
  return api.call({ method, url, key: api.rootKey, ...(body && { body }) });
}

it('a tree is cut at 16 MiB, nearest to its root first', async () => {
  const channel = (await call('POST', '/api/v1/channels', { name: 'large' })).json.id;
  const post = async (texts: number, spanId: string, parentSpanId: string | null): Promise<Answer['json']> => {
    const content = Array.from({ length: texts }, () => ({ type: 'text', text: TEXT }));
    const body = { content, span_id: spanId, parent_span_id: parentSpanId };
    return (await call('POST', `/api/v1/channels/${channel}/interactions`, body)).json;
  };
  const root = await post(0, 'root', null);
  await post(0, 'small', 'root');
  await post(0, 'below-small', 'small');
  for (let n = 0; n < LARGE; n++) await post(2, `large-${n}`, 'root');

  const tree = await call('GET', `/api/v1/interactions/${root.id}?include_nested_interactions=true`);
  expect(tree.status).toBe(200);
  const bytes = Buffer.byteLength(tree.bytes);
  expect(bytes).toBeLessThan(16 * MIB);
  expect(bytes).toBeGreaterThan(15 * MIB);
  const spans = tree.json.nested_interactions.map((one: Answer['json']) => one.span_id);
  expect(spans.slice(0, 3)).toEqual(['small', 'large-0', 'large-1']);
  expect(spans).not.toContain('below-small');

  const small = tree.json.nested_interactions[0];
  const below = await call('GET', `/api/v1/interactions/${small.id}?include_nested_interactions=true`);
  expect(below.json.nested_interactions).toHaveLength(1);
});
