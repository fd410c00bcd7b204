import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { Drafts } from '#libs/features/channels/index.ts';
import type { ChannelSequence } from '#libs/kernel/event.ts';
import { storeUnavailable } from '#libs/kernel/faults.ts';
import { newId } from '#libs/kernel/ids.ts';

import { DraftTicks, ResponseDraft } from './response-draft.ts';

/** The draft of an interaction as the channel has it. A write takes effect when its reply comes. */
class Channel {
  text = '';
  readonly deltas: string[] = [];
  /** How long a reply takes, in milliseconds. */
  tookMs = 0;
  isAway = false;
  /** The interaction is complete. */
  isOver = false;

  readonly putDraft = async (_ref: unknown, offset: number | null, text: string): ReturnType<Drafts['put']> => {
    if (this.tookMs > 0) await new Promise((resolve) => setTimeout(resolve, this.tookMs));
    if (this.isAway) throw storeUnavailable('Redis');
    if (this.isOver) return { ok: false, reason: 'complete_already' };
    const { length } = this.text;
    if (offset !== null && offset !== length) return { ok: false, reason: 'wrong_offset', length };
    this.text = offset === null ? text : this.text + text;
    this.deltas.push(text);
    return { ok: true, length: this.text.length };
  };
}

function newDrafts(count: number, tookMs = 0, ticks = new DraftTicks()) {
  return Array.from({ length: count }, (_, index) => {
    const channel = Object.assign(new Channel(), { tookMs });
    const ref = { channelId: newId(), sequence: (index + 1) as ChannelSequence };
    return { draft: new ResponseDraft(channel, ref, '', ticks), channel };
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

async function settle(drafts: readonly Draft[]): Promise<void> {
  const settled = Promise.all(drafts.map(({ draft }) => draft.settled()));
  await vi.advanceTimersByTimeAsync(1_000);
  await settled;
}

const countsOf = (drafts: readonly Draft[]) => drafts.map(({ channel }) => channel.deltas.length);

describe('the drafts of responses', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it('have a delta for each piece while writes are quick', async () => {
    const drafts = newDrafts(10);
    await write(drafts, 100);
    expect(Math.min(...countsOf(drafts))).toBeGreaterThanOrEqual(95);
  });

  it('are written together, and less often the longer the writes take', async () => {
    const drafts = newDrafts(200, 10);
    const writes = new Set<number>();
    for (const { channel } of drafts) {
      const put = channel.putDraft;
      Object.assign(channel, {
        putDraft: (...delta: Parameters<typeof put>) => (writes.add(Date.now()), put(...delta)),
      });
    }
    await write(drafts, 100);
    const counts = countsOf(drafts);
    // Ticks 80 ms apart in two seconds: eight times what the writes take.
    expect(Math.max(...counts)).toBeLessThanOrEqual(30);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    expect(writes.size).toBeLessThanOrEqual(30);
    await settle(drafts);
    for (const { channel } of drafts) expect(channel.text).toBe('piece '.repeat(100));
  });

  it('are written five times a second when a write takes longer than a tick', async () => {
    const drafts = newDrafts(20, 150);
    await write(drafts, 100);
    expect(Math.min(...countsOf(drafts))).toBeGreaterThanOrEqual(8);
    await settle(drafts);
    for (const { channel } of drafts) expect(channel.text).toBe('piece '.repeat(100));
  });

  it('write the first piece and the end at once, however many there are', async () => {
    const drafts = newDrafts(200);
    for (const { draft } of drafts) draft.add('first ');
    await vi.advanceTimersByTimeAsync(0);
    for (const { draft } of drafts) draft.add('last');
    // No time passes.
    await Promise.all(drafts.map(({ draft }) => draft.settled()));
    for (const { channel } of drafts) expect(channel.deltas).toEqual(['first ', 'last']);
    // The tick that was due for them finds nothing to write.
    await vi.advanceTimersByTimeAsync(500);
    expect(new Set(countsOf(drafts))).toEqual(new Set([2]));
  });

  it('are settled once a delta on its way and the rest after it are written', async () => {
    const [one] = newDrafts(1, 50);
    one?.draft.add('first ');
    one?.draft.add('last');
    const settled = one?.draft.settled();
    await vi.advanceTimersByTimeAsync(100);
    await settled;
    expect(one?.channel.deltas).toEqual(['first ', 'last']);
  });

  it('have deltas in full again when the others are complete', async () => {
    const ticks = new DraftTicks();
    const drafts = newDrafts(200, 10, ticks);
    await write(drafts, 20);
    await settle(drafts);
    const alone = newDrafts(1, 0, ticks);
    await write(alone, 20);
    const before = alone[0]?.channel.deltas.length ?? 0;
    await write(alone, 100);
    expect((alone[0]?.channel.deltas.length ?? 0) - before).toBeGreaterThanOrEqual(95);
  });

  it.each([
    ['fails', { isAway: true }],
    ['is refused', { isOver: true }],
    ['has no reply', { tookMs: 60_000 }],
  ])('are written without the one whose write %s', async (_what, state) => {
    const [broken, ...others] = newDrafts(10);
    if (broken === undefined) throw new TypeError('no draft');
    await write([broken, ...others], 10);
    Object.assign(broken.channel, state);
    const before = countsOf(others);
    await write([broken, ...others], 100);
    countsOf(others).forEach((count, index) => expect(count - (before[index] ?? 0)).toBeGreaterThanOrEqual(95));
    for (const { channel } of others) expect(channel.text).toBe('piece '.repeat(110));
  });

  it('continue when the store is back, and try it once a second until then', async () => {
    const [one] = newDrafts(1);
    if (one === undefined) throw new TypeError('no draft');
    await write([one], 10);
    one.channel.isAway = true;
    const tries = vi.spyOn(one.channel, 'putDraft');
    await write([one], 200);
    expect(tries.mock.calls.length).toBeLessThanOrEqual(5);
    one.channel.isAway = false;
    await write([one], 60);
    expect(one.channel.text.length).toBeGreaterThan('piece '.length * 250);
    await one.draft.settled();
    expect(one.channel.text).toBe('piece '.repeat(270));
  });

  it.each([
    ['was written all the same', 'piece piece '],
    ['found the text gone', ''],
  ])('replace the text after a delta that %s', async (_what, kept) => {
    const [one] = newDrafts(1);
    if (one === undefined) throw new TypeError('no draft');
    await write([one], 1);
    one.channel.isAway = true;
    await write([one], 1);
    Object.assign(one.channel, { isAway: false, text: kept });
    await write([one], 60);
    await one.draft.settled();
    expect(one.channel.text).toBe('piece '.repeat(62));
  });
});
