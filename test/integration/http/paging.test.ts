import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { pageMetaSchema } from '#libs/platform/http/index.ts';
import { type Edge, startEdge } from './edge.ts';

const pageSchema = z.object({
  items: z.array(z.object({ id: z.string() })),
  meta: z.strictObject(pageMetaSchema.shape),
});

let edge: Edge;
beforeAll(async () => {
  edge = await startEdge();
});
afterAll(() => edge.server.close());

async function page(query: string): Promise<z.infer<typeof pageSchema>> {
  const answer = await edge.call(`/things?${query}`);
  expect(answer.status).toBe(200);
  return pageSchema.parse(await answer.json());
}

test('pages by number: the first, one in the middle, the last, one past the end', async () => {
  const first = await page('size=10');
  expect(first.meta).toMatchObject({ total: 25, page: 1, has_next: true, has_previous: false });
  expect(first.items.map(({ id }) => id)).toEqual(Array.from({ length: 10 }, (_, index) => String(index)));
  expect((await page('size=10&page=2')).meta).toMatchObject({ page: 2, has_next: true, has_previous: true });
  const last = await page('size=10&page=3');
  expect(last.items).toHaveLength(5);
  expect(last.meta).toEqual({ total: 25, page: 3, has_next: false, has_previous: true, next_cursor: null });
  const past = await page('size=10&page=1000000000');
  expect(past).toMatchObject({ items: [], meta: { has_next: false, has_previous: true, next_cursor: null } });
});

test('the default is a page of 50', async () => {
  expect((await page('')).items).toHaveLength(25);
});

test('cursors lead through everything once, and name their page', async () => {
  const seen: string[] = [];
  const pages: number[] = [];
  let query = 'size=10&kind=a';
  for (;;) {
    const { items, meta } = await page(query);
    seen.push(...items.map(({ id }) => id));
    pages.push(meta.page);
    expect(meta.has_previous).toBe(meta.page > 1);
    if (meta.next_cursor === null) break;
    query = `size=10&kind=a&cursor=${meta.next_cursor}`;
  }
  expect(seen).toEqual(Array.from({ length: 25 }, (_, index) => String(index)));
  expect(pages).toEqual([1, 2, 3]);
});

test('a cursor together with a page is 422', async () => {
  const { meta } = await page('size=10');
  for (const number of [1, 2]) {
    const answer = await edge.call(`/things?size=10&page=${number}&cursor=${meta.next_cursor}`);
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({
      detail: [{ type: 'value_error', loc: ['query', 'page'], input: number }],
    });
  }
});

test('the size may change from one cursor to the next', async () => {
  const { meta } = await page('size=10');
  const next = await page(`size=3&cursor=${meta.next_cursor}`);
  expect(next.items.map(({ id }) => id)).toEqual(['10', '11', '12']);
  expect(next.meta.page).toBe(2);
});

test('a cursor of another filter, another organization, or changed by one character is 422', async () => {
  const { meta } = await page('size=10&kind=a');
  const cursor = meta.next_cursor ?? '';
  const changed = (cursor.startsWith('A') ? 'B' : 'A') + cursor.slice(1);
  const foreign = { headers: { authorization: edge.keys.second } };
  const answers = await Promise.all([
    edge.call(`/things?cursor=${cursor}`),
    edge.call(`/things?kind=b&cursor=${cursor}`),
    edge.call(`/things?kind=a&cursor=${cursor}`, foreign),
    edge.call(`/things?kind=a&cursor=${changed}`),
    edge.call(`/things?kind=a&cursor=`),
  ]);
  for (const answer of answers) {
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({ detail: [{ loc: ['query', 'cursor'] }] });
  }
});
