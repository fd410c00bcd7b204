import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import { decideEnter, decideLeave, MAX_WAITING_RUNS, runLaneCodec, runLaneFold } from './run-lane.ts';
import type { RunLaneEvent } from './run-lane.ts';
import samples from './run-lane.events.samples.json' with { type: 'json' };

describeStoredEvents('run lanes', runLaneCodec, samples);

const entered = (sequence: number): RunLaneEvent => ({
  type: 'RunEntered.v1',
  data: { id: 'lane', runId: `run-${sequence}`, sequence },
});
const left = (sequence: number): RunLaneEvent => ({ type: 'RunLeft.v1', data: { runId: `run-${sequence}` } });
const turns = (...events: RunLaneEvent[]) => {
  const lane = stateAfter(runLaneFold, events);
  return [lane?.current?.sequence ?? null, ...(lane?.waiting ?? []).map(({ sequence }) => sequence)];
};

describe('the runs of an agent in a channel', () => {
  it('take turns in the order of their messages', () => {
    expect(turns(entered(1))).toEqual([1]);
    expect(turns(entered(1), entered(3), entered(2))).toEqual([1, 2, 3]);
    expect(turns(entered(1), entered(3), entered(2), left(1))).toEqual([2, 3]);
    expect(turns(entered(1), entered(3), entered(2), left(2), left(1))).toEqual([3]);
    expect(turns(entered(1), left(1))).toEqual([null]);
    expect(turns(entered(1), left(1), entered(2))).toEqual([2]);
  });

  it('enter and leave once', () => {
    const lane = stateAfter(runLaneFold, [entered(1), entered(2)]);
    for (const sequence of [1, 2]) {
      const entry = { id: 'lane', runId: `run-${sequence}`, sequence };
      expect(decideEnter(lane, entry)).toEqual({ ok: true, events: [] });
      expect(decideLeave(lane, entry.runId)).toEqual({ ok: true, events: [left(sequence)] });
    }
    expect(decideLeave(lane, 'run-3')).toEqual({ ok: true, events: [] });
    expect(decideLeave(null, 'run-1')).toEqual({ ok: true, events: [] });
  });

  it('are bounded', () => {
    const events = Array.from({ length: MAX_WAITING_RUNS }, (_, index) => entered(index + 1));
    const next = { id: 'lane', runId: 'run-99', sequence: 99 };
    expect(decideEnter(stateAfter(runLaneFold, events), next)).toEqual({ ok: true, events: [entered(99)] });
    const full = stateAfter(runLaneFold, [...events, entered(98)]);
    expect(decideEnter(full, next)).toEqual({ ok: false, rejection: { reason: 'full' } });
  });
});
