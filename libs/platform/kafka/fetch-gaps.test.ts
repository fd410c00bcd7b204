import { beforeEach, describe, expect, it } from 'vitest';
import { FetchGaps } from './fetch-gaps.ts';

let nowMs: number;
let reported: number;
let gaps: FetchGaps;

beforeEach(() => {
  [nowMs, reported] = [1_000, 0];
  gaps = new FetchGaps(
    () => reported++,
    () => nowMs,
  );
});

function fetch(broker: number, { answered = true, takesMs = 250 } = {}): void {
  gaps.started(broker);
  nowMs += takesMs;
  if (answered) gaps.answered(broker);
  gaps.ended(broker);
}

describe('gaps between fetches', () => {
  it('are not reported while fetches are consecutive, however long each waits', () => {
    for (let n = 0; n < 10; n++) {
      fetch(1);
      nowMs += 20;
    }
    expect(reported).toBe(0);
  });

  it('are reported once, before a late fetch', () => {
    fetch(1);
    // A topic that was made anew in 85 ms was measured.
    for (const [before, lateMs] of [80, 5_000, 80].entries()) {
      nowMs += lateMs;
      fetch(1);
      expect(reported).toBe(before + 1);
    }
  });

  it('are reported for a failed fetch, once until the broker has answered again', () => {
    fetch(1);
    for (let n = 0; n < 3; n++) fetch(1, { answered: false });
    expect(reported).toBe(1);
    fetch(1);
    fetch(1, { answered: false });
    expect(reported).toBe(2);
  });

  it('are not reported for a broker without partitions of this member', () => {
    for (let n = 0; n < 10; n++) {
      gaps.started(2);
      fetch(1, { takesMs: 90 });
      gaps.ended(2);
    }
    expect(reported).toBe(0);
  });
});
