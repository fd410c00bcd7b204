import { describe, expect, it } from 'vitest';

import { streamRevision } from '#libs/kernel/event.ts';

import type { Channel } from '../channel/channel.ts';
import type { ChannelStream, KnownSpan } from './interaction.ts';
import { decidePast, type PastPost } from './past-posts.ts';

const organizationId = 'org-1';
const channel = { organizationId, archivedAt: null } as Channel;
const state: ChannelStream = { channel, interactions: { open: {} } };

const past = (spanId: string, parentSpanId: string | null = null, parentMayBeMissing = false): PastPost => ({
  interaction: {
    participant: { type: 'system' },
    content: [{ type: 'text', text: spanId } as { type: string }],
    contentRole: 'user_message',
    complete: false,
    metadata: null,
    invocationConfig: null,
    turnId: null,
    spanId,
    parentSpanId,
    organizationApplication: null,
  },
  parentMayBeMissing,
});

/** The decision on interactions, after others whose spans are given. */
function decided(posts: readonly PastPost[], before: Record<string, KnownSpan> = {}, of = state) {
  return decidePast(of, posts, { organizationId, next: streamRevision(7), spanAt: (span) => before[span] ?? null });
}
const refused = (reason: string): object => ({ ok: false, rejection: { reason } });

describe('posts of the past', () => {
  it('may be below those before them, and are complete', () => {
    const { events, results } = decided([past('a'), past('b', 'a'), past('c', 'b'), past('d', 'old')], {
      old: { depth: 4, turnId: 'turn' },
    });
    expect(events.map(({ data }) => [data.spanId, data.depth, data.turnId, data.complete])).toEqual([
      ['a', 1, 'a', true],
      ['b', 2, 'a', true],
      ['c', 3, 'a', true],
      ['d', 5, 'turn', true],
    ]);
    expect(results).toEqual([8, 9, 10, 11].map((sequence) => ({ ok: true, sequence })));
  });

  it('are refused one by one, and the others have the sequences of their events', () => {
    const posts = [past('a'), past('a'), past('b', 'missing'), past('old'), past('c', 'deep'), past('d', 'a')];
    const { events, results } = decided(posts, {
      old: { depth: 1, turnId: null },
      deep: { depth: 64, turnId: null },
    });
    expect(events.map(({ data }) => data.spanId)).toEqual(['a', 'd']);
    expect(results).toEqual([
      { ok: true, sequence: 8 },
      refused('span_taken'),
      refused('parent_not_found'),
      refused('span_taken'),
      refused('too_deep'),
      { ok: true, sequence: 9 },
    ]);
  });

  it('become roots where their parent may be missing and is, and keep those that are below them', () => {
    const { events, results } = decided([past('a', 'missing', true), past('b', 'a', true)]);
    expect(events.map(({ data }) => [data.parentSpanId, data.depth])).toEqual([
      [null, 1],
      ['a', 2],
    ]);
    expect(results.every(({ ok }) => ok)).toBe(true);
  });

  it('are refused in a channel that is missing, archived, or of another organization', () => {
    const of = (changed: Partial<Channel> | null) =>
      decided([past('a')], {}, { ...state, channel: changed && { ...channel, ...changed } }).results;
    expect(of(null)).toEqual([refused('not_found')]);
    expect(of({ organizationId: 'org-2' })).toEqual([refused('not_found')]);
    expect(of({ archivedAt: '2026-02-01T00:00:00.000Z' })).toEqual([refused('archived')]);
  });
});
