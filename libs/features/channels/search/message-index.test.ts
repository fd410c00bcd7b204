import { describe, expect, it } from 'vitest';

import { MessageIndex, SORTS } from './message-index.ts';

describe('pages of an index of messages', () => {
  it.each(SORTS)('are the same by offset and by cursor, however far: %s', (sort) => {
    const index = new MessageIndex(':memory:');
    const changes = Array.from({ length: 300 }, (_, at) => {
      const text = `rocket ${'again '.repeat(at % 7)}`;
      return { kind: 'posted', sequence: at + 1, atMs: 1_000 + ((at * 37) % 300), text } as const;
    });
    index.write({ channelId: 'c', after: -1, revision: 299, event: 'last', changes });
    const page = (offset: number, limit: number, after: Parameters<MessageIndex['search']>[0]['after'] = null) =>
      index.search({ query: 'rocket', channelIds: ['c'], afterMs: null, beforeMs: null, sort, offset, limit, after });
    const all = page(0, 300);
    expect(all).toMatchObject({ total: 300, hasNext: false });
    expect(new Set(all.hits.map(({ sequence }) => sequence)).size).toBe(300);
    expect(all.hits).toEqual(all.hits.toSorted((a, b) => b.score - a.score || b.atMs - a.atMs));
    for (const [offset, limit] of [
      [0, 1],
      [1, 3],
      [120, 7],
      [290, 10],
      [295, 10],
      [300, 10],
    ] as const) {
      const expected = all.hits.slice(offset, offset + limit);
      const hasNext = offset + limit < 300;
      expect(page(offset, limit)).toMatchObject({ hits: expected, hasNext });
      const last = all.hits[offset - 1];
      if (last === undefined) continue;
      expect(page(0, limit, { ...last, upToMs: all.upToMs })).toMatchObject({ hits: expected, hasNext });
    }
    index.close();
  });
});
