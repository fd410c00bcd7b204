import { beforeEach, describe, expect, it } from 'vitest';
import { FetchGaps } from './fetch-gaps.ts';

let nowMs: number;
let told: number;
let gaps: FetchGaps;

beforeEach(() => {
  [nowMs, told] = [1_000, 0];
  gaps = new FetchGaps(
    () => told++,
    () => nowMs,
  );
});

function fetch(broker: number, { answered = true, takesMs = 250 } = {}): void {
  gaps.begun(broker);
  nowMs += takesMs;
  if (answered) gaps.answered(broker);
  gaps.ended(broker);
}

describe('gaps between fetches', () => {
  it('are none while one fetch follows on another, however long each waits', () => {
    for (let n = 0; n < 10; n++) {
      fetch(1);
      nowMs += 20;
    }
    expect(told).toBe(0);
  });

  it('are told before a fetch that comes late, each once', () => {
    fetch(1);
    for (let n = 1; n <= 3; n++) {
      nowMs += 5_000;
      fetch(1);
      expect(told).toBe(n);
    }
  });

  it('are told of a fetch that broke off, once until a broker has answered again', () => {
    fetch(1);
    for (let n = 0; n < 3; n++) fetch(1, { answered: false });
    expect(told).toBe(1);
    fetch(1);
    fetch(1, { answered: false });
    expect(told).toBe(2);
  });

  it('are none of a broker that is asked for nothing, whatever another one answers meanwhile', () => {
    for (let n = 0; n < 10; n++) {
      gaps.begun(2);
      fetch(1, { takesMs: 90 });
      gaps.ended(2);
    }
    expect(told).toBe(0);
  });
});
