import { describe, expect, it } from 'vitest';

import { Trail } from './trail.ts';

const at = (position: number) => ({ commit: BigInt(position), prepare: BigInt(position) });

function trailOf(isWhole: () => boolean = () => true) {
  const clock = { nowMs: 0 };
  const trail = new Trail({ spanMs: 60_000, isWhole, nowMs: () => clock.nowMs });
  const follow = (from: number, to: number) => {
    for (let second = from; second <= to; second++) {
      clock.nowMs = second * 1_000;
      trail.note(at(second));
    }
  };
  return { trail, follow };
}

describe('the trail of a projector', () => {
  it('knows what was applied a minute ago, and before that where it began', () => {
    const { trail, follow } = trailOf();
    expect(trail.oldest).toBeNull();
    trail.begin({ build: 'one', from: 'start' });
    follow(1, 59);
    expect(trail.oldest).toBe('start');
    follow(60, 200);
    expect(trail.oldest).toEqual(at(140));
  });

  it('goes on where its projector goes back in the same build, and begins anew with another', () => {
    const { trail, follow } = trailOf();
    trail.begin({ build: 'one', from: at(7) });
    trail.begin({ build: 'one', from: at(9) });
    expect(trail.oldest).toEqual(at(7));
    follow(1, 100);
    trail.begin({ build: 'two', from: 'start' });
    expect(trail.oldest).toBe('start');
  });

  it('does not count time in which a store was away', () => {
    let isWhole = true;
    const { trail, follow } = trailOf(() => isWhole);
    trail.begin({ build: 'one', from: 'start' });
    follow(1, 100);
    isWhole = false;
    follow(101, 1_000);
    expect(trail.oldest).toEqual(at(40));
  });
});
