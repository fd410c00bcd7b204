import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';

import { eventFrame, FRAME_FLAG, withoutData, type EventContent } from './frames.ts';

const at = '2026-01-31T12:00:00.000Z';
const ADA = { type: 'user', id: 'ada', keyId: 'key' } as const;
const BY_ADA = { at, actor: ADA };
const sequence = sequenceOf(streamRevision(6));
const content: EventContent = {
  type: 'interaction.posted',
  json: '{"id":"a","content":[]}',
  flags: FRAME_FLAG.nested | FRAME_FLAG.incomplete,
};

describe('the frame of an event', () => {
  it('has its members in a fixed order, and its data unchanged', () => {
    expect(eventFrame(sequence, BY_ADA, content)).toEqual({
      sequence: 7,
      flags: 3,
      json: '{"frame":"event","seq":7,"type":"interaction.posted","at":"2026-01-31T12:00:00.000Z","actor":{"type":"user","id":"ada","key_id":"key","on_behalf_of":null},"data":{"id":"a","content":[]}}',
    });
  });

  it('has no flags by default', () => {
    expect(eventFrame(sequence, BY_ADA, { type: 'unknown', json: 'null' }).flags).toBe(0);
  });

  it('without data equals the frame of an event whose data is null', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), fc.string(), fc.array(fc.string()), (data, type, text, changed) => {
        const by = { at: text, actor: { type: 'service', id: text, keyId: text } } as const;
        const content = { type, changed, onBehalfOf: { type: 'agent', id: text } } as const;
        const { json } = eventFrame(sequence, by, { ...content, json: JSON.stringify(data) });
        expect(withoutData(json)).toBe(eventFrame(sequence, by, { ...content, json: 'null' }).json);
        expect(JSON.parse(json)).toEqual({
          frame: 'event',
          seq: 7,
          type,
          at: text,
          actor: { type: 'service', id: text, key_id: text, on_behalf_of: content.onBehalfOf },
          changed,
          data: JSON.parse(JSON.stringify(data)),
        });
      }),
    );
  });

  it('is not confused by data or texts that look like its own members', () => {
    const data = JSON.stringify({ text: ',"data":null}', data: { data: 1 } });
    const { json } = eventFrame(sequence, BY_ADA, { type: 'x","data":1', json: data });
    expect(JSON.parse(withoutData(json))).toEqual({
      frame: 'event',
      seq: 7,
      type: 'x","data":1',
      at,
      actor: { type: 'user', id: 'ada', key_id: 'key', on_behalf_of: null },
      data: null,
    });
  });
});
