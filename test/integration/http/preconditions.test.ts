import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Position } from '#libs/platform/http/index.ts';
import { type Edge, startEdge } from './edge.ts';

let edge: Edge;
const waits: (Position & { organizationId: string })[] = [];
let visible = true;
beforeAll(async () => {
  edge = await startEdge({
    positions: {
      async waitUntilVisible(position) {
        waits.push(position);
        return visible;
      },
    },
  });
});
afterAll(() => edge.server.close());

const patchIf = async (ifMatch: string): Promise<number> =>
  (await edge.call('/things/one', { method: 'PATCH', body: '{}', headers: { 'if-match': ifMatch } })).status;
const getIf = (ifNoneMatch: string): Promise<Response> =>
  edge.call('/things/one', { headers: { 'if-none-match': ifNoneMatch } });

test.each(['"12"', '*', ' * ', '"1", "12"', '"a,b", "12"', 'W/"12", "12"'])(
  'If-Match: %s lets the command run',
  async (tags) => expect(await patchIf(tags)).toBe(200),
);

test.each(['"11"', 'W/"12"', '12', '"1","2"', '', '"12', '""'])('If-Match: %s is 412', async (tags) =>
  expect(await patchIf(tags)).toBe(412),
);

test.each(['"12"', 'W/"12"', '*', '"1", W/"12"'])('If-None-Match: %s is 304 without a body', async (tags) => {
  const answer = await getIf(tags);
  expect(answer.status).toBe(304);
  expect(answer.headers.get('etag')).toBe('"12"');
  expect(await answer.text()).toBe('');
});

test.each(['"11"', '12', ''])('If-None-Match: %s is 200', async (tags) => expect((await getIf(tags)).status).toBe(200));

async function positionAfterCommand(): Promise<string> {
  const answer = await edge.call('/things/one', { method: 'PATCH', body: '{}' });
  expect(answer.headers.get('etag')).toBe('"13"');
  return answer.headers.get('parley-position') ?? '';
}

test('a read with a position waits for it, as its organization', async () => {
  const position = await positionAfterCommand();
  waits.length = 0;
  const answer = await edge.call('/things/one', { headers: { 'parley-position': position } });
  expect(answer.status).toBe(200);
  expect(waits).toEqual([{ stream: 'thing-one', revision: 13, organizationId: 'org-1' }]);
});

test('a read that cannot reach its position in time is 503 with Retry-After', async () => {
  const position = await positionAfterCommand();
  visible = false;
  const answer = await edge.call('/things/one', { headers: { 'parley-position': position } });
  visible = true;
  expect(answer.status).toBe(503);
  expect(answer.headers.get('retry-after')).toBe('1');
  expect(await answer.json()).toMatchObject({ code: 'not_caught_up' });
});

test('a position that is made up or foreign is 422, and is not waited for', async () => {
  const position = await positionAfterCommand();
  waits.length = 0;
  const made = await edge.call('/things/one', { headers: { 'parley-position': 'bWFkZSB1cCBwb3NpdGlvbg' } });
  const foreign = await edge.call('/things/one', {
    headers: { 'parley-position': position, authorization: edge.keys.second },
  });
  for (const answer of [made, foreign]) {
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({ detail: [{ loc: ['header', 'parley-position'] }] });
  }
  expect(waits).toEqual([]);
});
