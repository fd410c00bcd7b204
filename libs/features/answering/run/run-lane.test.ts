import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import {
  decideEnter,
  decideLeave,
  isReplaced,
  MAX_WAITING_RUNS,
  replacedRuns,
  runLaneCodec,
  type RunLaneEvent,
  runLaneFold,
} from './run-lane.ts';
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
      for (const isRestart of [false, true]) {
        expect(decideEnter(lane, entry, isRestart)).toEqual({ ok: true, events: [] });
      }
      expect(decideLeave(lane, entry.runId)).toEqual({ ok: true, events: [left(sequence)] });
    }
    expect(decideLeave(lane, 'run-3')).toEqual({ ok: true, events: [] });
    expect(decideLeave(null, 'run-1')).toEqual({ ok: true, events: [] });
  });

  it('are bounded', () => {
    const events = Array.from({ length: MAX_WAITING_RUNS }, (_, index) => entered(index + 1));
    const next = { id: 'lane', runId: 'run-99', sequence: 99 };
    expect(decideEnter(stateAfter(runLaneFold, events), next, false)).toEqual({ ok: true, events: [entered(99)] });
    const full = stateAfter(runLaneFold, [...events, entered(98)]);
    expect(decideEnter(full, next, false)).toEqual({ ok: false, rejection: { reason: 'full' } });
  });
});

describe('a run that replaces those of earlier messages', () => {
  const replaced = (sequence: number): RunLaneEvent => ({ type: 'EarlierRunsReplaced.v1', data: { sequence } });
  const entry = (sequence: number) => ({ id: 'lane', runId: `run-${sequence}`, sequence });

  it('enters with the sequence of its message, which holds for runs that enter later', () => {
    expect(decideEnter(null, entry(3), true)).toEqual({ ok: true, events: [entered(3), replaced(3)] });
    for (const events of [[], [left(3)]]) {
      const lane = stateAfter(runLaneFold, [entered(3), replaced(3), ...events]);
      for (const isRestart of [false, true]) {
        expect(decideEnter(lane, entry(2), isRestart)).toEqual({ ok: false, rejection: { reason: 'replaced' } });
        expect(decideEnter(lane, entry(4), isRestart)).toMatchObject({ ok: true });
      }
    }
  });

  it('leaves no run of an earlier message, and those of later ones', () => {
    const lane = stateAfter(runLaneFold, [entered(1), entered(2), entered(5), entered(4), replaced(4), replaced(3)]);
    expect(replacedRuns(lane)).toEqual(['run-1', 'run-2']);
    expect([3, 4, 5].map((sequence) => isReplaced(lane, { sequence }))).toEqual([true, false, false]);
    expect(replacedRuns(stateAfter(runLaneFold, [entered(1), entered(2)]))).toEqual([]);
    expect(replacedRuns(null)).toEqual([]);
  });

  it('enters where those that it replaces fill the lane', () => {
    const events = Array.from({ length: MAX_WAITING_RUNS + 1 }, (_, index) => entered(index + 1));
    const full = stateAfter(runLaneFold, events);
    expect(decideEnter(full, entry(98), true)).toEqual({ ok: true, events: [entered(98), replaced(98)] });
    const after = stateAfter(runLaneFold, [...events, entered(98), replaced(98)]);
    expect(decideEnter(after, entry(99), false)).toEqual({ ok: true, events: [entered(99)] });
  });
});
