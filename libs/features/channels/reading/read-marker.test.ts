import { describe, expect, it } from 'vitest';

import { newId } from '#libs/kernel/ids.ts';
import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import { decideMove, readMarkerCodec, type ReadMarkerEvent, readMarkerFold, readMarkerId } from './read-marker.ts';
import samples from './read-marker.events.samples.json' with { type: 'json' };

describeStoredEvents('read markers', readMarkerCodec, samples);

const marker = { channelId: newId(), userId: 'ada' };
const moved = (sequence: number): ReadMarkerEvent => ({
  type: 'ReadMarkerMoved.v1',
  data: { ...marker, sequence },
});

describe('a read marker', () => {
  it('moves forward only', () => {
    const state = stateAfter(readMarkerFold, [moved(3), moved(7)]);
    expect(state).toMatchObject({ id: readMarkerId(marker), ...marker, sequence: 7, changedRevision: 1 });
    expect(decideMove(null, moved(1).data)).toEqual({ ok: true, events: [moved(1)] });
    expect(decideMove(state, moved(8).data)).toEqual({ ok: true, events: [moved(8)] });
    for (const sequence of [7, 6, 1]) {
      expect(decideMove(state, moved(sequence).data)).toEqual({ ok: true, events: [] });
    }
  });

  it('is another one for each user and channel', () => {
    const ids = [marker, { ...marker, userId: 'bob' }, { ...marker, channelId: newId() }].map(readMarkerId);
    expect(new Set(ids).size).toBe(3);
  });
});
