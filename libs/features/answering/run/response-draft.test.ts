import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { ChannelSequence } from '#libs/kernel/event.ts';
import { newId } from '#libs/kernel/ids.ts';

import { ResponseDraft } from './response-draft.ts';

/** Drafts with what was written of them, as the channel has it. */
function newDrafts(count: number) {
  return Array.from({ length: count }, (_, index) => {
    const written: string[] = [];
    const putDraft = async (_ref: unknown, offset: number | null, text: string) => {
      const { length } = written.join('');
      if (offset !== length) return { ok: false, reason: 'wrong_offset', length } as const;
      written.push(text);
      return { ok: true, length: length + text.length } as const;
    };
    const ref = { channelId: newId(), sequence: (index + 1) as ChannelSequence };
    return { draft: new ResponseDraft({ putDraft }, ref, ''), written };
  });
}

type Draft = ReturnType<typeof newDrafts>[number];

/** All models write a piece every 20 ms. */
async function write(drafts: readonly Draft[], pieces: number): Promise<void> {
  for (let piece = 0; piece < pieces; piece += 1) {
    for (const { draft } of drafts) draft.add('piece ');
    await vi.advanceTimersByTimeAsync(20);
  }
}

const writesOf = (drafts: readonly Draft[]) => drafts.map(({ written }) => written.length);

describe('the drafts of responses', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it('have a delta for each piece while few models write', async () => {
    const drafts = newDrafts(10);
    await write(drafts, 100);
    expect(Math.min(...writesOf(drafts))).toBeGreaterThanOrEqual(95);
    await Promise.all(drafts.map(({ draft }) => draft.settled()));
  });

  it('share the writes of the process while many models write, and each has the same number', async () => {
    const drafts = newDrafts(200);
    await write(drafts, 100);
    const writes = writesOf(drafts);
    // 1,000 a second in two seconds, and the first delta of each, which does not wait.
    expect(writes.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(2_200);
    expect(Math.max(...writes) - Math.min(...writes)).toBeLessThanOrEqual(1);
    await Promise.all(drafts.map(({ draft }) => draft.settled()));
    for (const { written } of drafts) expect(written.join('')).toBe('piece '.repeat(100));
  });

  it('write the first piece and the end at once, however many there are', async () => {
    const drafts = newDrafts(200);
    for (const { draft } of drafts) draft.add('first ');
    await vi.advanceTimersByTimeAsync(0);
    expect(writesOf(drafts)).toEqual(drafts.map(() => 1));
    for (const { draft } of drafts) draft.add('last');
    // No time passes.
    await Promise.all(drafts.map(({ draft }) => draft.settled()));
    for (const { written } of drafts) expect(written).toEqual(['first ', 'last']);
  });

  it('have deltas in full again when the others are complete', async () => {
    const drafts = newDrafts(200);
    await write(drafts, 20);
    const [one, ...others] = drafts;
    await Promise.all(others.map(({ draft }) => draft.settled()));
    // The pause that has begun.
    await vi.advanceTimersByTimeAsync(200);
    const before = one?.written.length ?? 0;
    await write(one === undefined ? [] : [one], 100);
    expect((one?.written.length ?? 0) - before).toBeGreaterThanOrEqual(95);
    await one?.draft.settled();
  });
});
