import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';

import { eventFrame, FRAME_FLAG, withoutData } from './frames.ts';

const parts = {
  sequence: sequenceOf(streamRevision(6)),
  type: 'interaction.posted',
  at: '2026-01-31T12:00:00.000Z',
  data: { json: '{"id":"a","content":[]}' },
  flags: FRAME_FLAG.nested | FRAME_FLAG.incomplete,
};

describe('the frame of an event', () => {
  it('has its members in a fixed order, and the data as they were given', () => {
    expect(eventFrame(parts)).toEqual({
      sequence: 7,
      flags: 3,
      json: '{"frame":"event","seq":7,"type":"interaction.posted","at":"2026-01-31T12:00:00.000Z","data":{"id":"a","content":[]}}',
    });
  });

  it('says null where there is no data', () => {
    expect(JSON.parse(eventFrame({ ...parts, data: null }).json)).toHaveProperty('data', null);
  });

  it('is the frame of an event without data once its data are taken from it, whatever they are', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), fc.string(), (data, type, at) => {
        const { json } = eventFrame({ ...parts, type, at, data: { json: JSON.stringify(data) } });
        expect(withoutData(json)).toBe(eventFrame({ ...parts, type, at, data: null }).json);
        expect(JSON.parse(json)).toEqual({ frame: 'event', seq: 7, type, at, data: JSON.parse(JSON.stringify(data)) });
      }),
    );
  });

  it('is not misled by data or texts that look like its own members', () => {
    const data = { json: JSON.stringify({ text: ',"data":null}', data: { data: 1 } }) };
    const { json } = eventFrame({ ...parts, type: 'x","data":1', data });
    expect(JSON.parse(withoutData(json))).toEqual({
      frame: 'event',
      seq: 7,
      type: 'x","data":1',
      at: parts.at,
      data: null,
    });
  });
});
