import { describe, expect, it } from 'vitest';

import { RecentCheckpoints } from './recent-checkpoints.ts';

const at = (position: number) => ({ commit: BigInt(position), prepare: BigInt(position) });

function recentCheckpoints(isWhole: () => boolean = () => true) {
  const clock = { nowMs: 0 };
  const recent = new RecentCheckpoints({ spanMs: 60_000, isWhole, nowMs: () => clock.nowMs });
  const follow = (from: number, to: number) => {
    for (let second = from; second <= to; second++) {
      clock.nowMs = second * 1_000;
      recent.note(at(second));
    }
  };
  return { recent, follow };
}

describe('recent checkpoints of a projector', () => {
  it('include the checkpoint of a minute ago, and before that the first one', () => {
    const { recent, follow } = recentCheckpoints();
    expect(recent.oldest).toBeNull();
    recent.begin({ build: 'one', from: 'start' });
    follow(1, 59);
    expect(recent.oldest).toBe('start');
    follow(60, 200);
    expect(recent.oldest).toEqual(at(140));
  });

  it('continue when the projector restarts in the same build, and start anew with another build', () => {
    const { recent, follow } = recentCheckpoints();
    recent.begin({ build: 'one', from: at(7) });
    recent.begin({ build: 'one', from: at(9) });
    expect(recent.oldest).toEqual(at(7));
    follow(1, 100);
    recent.begin({ build: 'two', from: 'start' });
    expect(recent.oldest).toBe('start');
  });

  it('do not count time in which a store was down', () => {
    let isWhole = true;
    const { recent, follow } = recentCheckpoints(() => isWhole);
    recent.begin({ build: 'one', from: 'start' });
    follow(1, 100);
    isWhole = false;
    follow(101, 1_000);
    expect(recent.oldest).toEqual(at(40));
  });
});
