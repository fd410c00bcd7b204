import streams from '@eventstore/db-client/generated/streams_pb.js';
import { assert, constantFrom, integer, nat, property, record, string, uint8Array, uuid } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeStoredEvent, parseLink, StoredEvent, TOMBSTONE_REVISION } from './stored-event.ts';

const { RecordedEvent } = streams.ReadResp.ReadEvent;

const events = record({
  id: uuid(),
  type: string({ unit: 'grapheme' }),
  contentType: constantFrom('application/json', 'application/octet-stream'),
  data: uint8Array({ maxLength: 300 }),
  metadata: uint8Array({ maxLength: 300 }),
});
const places = record({
  stream: string({ unit: 'grapheme', minLength: 1 }),
  revision: nat({ max: Number.MAX_SAFE_INTEGER }),
  position: nat({ max: Number.MAX_SAFE_INTEGER }),
  createdMs: integer({ min: 1, max: 4_000_000_000_000 }),
});

describe('a stored event', () => {
  test('is the RecordedEvent that the protocol defines', () => {
    assert(
      property(events, places, (event, place) => {
        const recorded = RecordedEvent.deserializeBinary(encodeStoredEvent(event, place));
        expect(recorded.getId()?.getString()).toBe(event.id);
        expect(Buffer.from(recorded.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString()).toBe(place.stream);
        expect(recorded.getStreamRevision()).toBe(String(place.revision));
        expect(recorded.getCommitPosition()).toBe(String(place.position));
        expect(recorded.getPreparePosition()).toBe(String(place.position));
        expect(Object.fromEntries(recorded.getMetadataMap().getEntryList())).toEqual({
          type: event.type,
          'content-type': event.contentType,
          created: String(BigInt(place.createdMs) * 10_000n),
        });
        expect(Buffer.from(recorded.getData_asU8())).toEqual(Buffer.from(event.data));
        expect(Buffer.from(recorded.getCustomMetadata_asU8())).toEqual(Buffer.from(event.metadata));
      }),
    );
  });

  test('is read as it was written', () => {
    assert(
      property(events, places, (event, place) => {
        const { id, type, contentType, stream, revision, position, createdMs, data, metadata } = new StoredEvent(
          encodeStoredEvent(event, place),
        );
        expect({ id, type, contentType }).toEqual({ id: event.id, type: event.type, contentType: event.contentType });
        expect({ stream, revision, position, createdMs }).toEqual(place);
        expect([Buffer.from(data), Buffer.from(metadata)]).toEqual([
          Buffer.from(event.data),
          Buffer.from(event.metadata),
        ]);
      }),
    );
  });

  test('that marks a deleted stream has the exact revision of the protocol', () => {
    const event = { id: crypto.randomUUID(), type: '$streamDeleted', contentType: 'application/octet-stream' };
    const place = { stream: 's', revision: TOMBSTONE_REVISION, position: 7, createdMs: 1 };
    const frame = encodeStoredEvent({ ...event, data: Buffer.alloc(0), metadata: Buffer.alloc(0) }, place);
    expect(RecordedEvent.deserializeBinary(frame).getStreamRevision()).toBe('9223372036854775807');
    expect(new StoredEvent(frame)).toMatchObject({ revision: TOMBSTONE_REVISION, position: 7 });
  });

  test('that is truncated is not read', () => {
    const event = { id: crypto.randomUUID(), type: 't', contentType: 'application/json' };
    const place = { stream: 's', revision: 0, position: 1, createdMs: 1 };
    const frame = encodeStoredEvent({ ...event, data: Buffer.from('{}'), metadata: Buffer.alloc(0) }, place);
    expect(() => new StoredEvent(frame.subarray(0, -1))).toThrow(RangeError);
  });
});

test.each([
  ['12@orders', { revision: 12, stream: 'orders' }],
  ['0@a@b', { revision: 0, stream: 'a@b' }],
  ['12', undefined],
  ['@orders', undefined],
  ['-1@orders', undefined],
  ['12@', undefined],
  ['', undefined],
])('a link with the data %j names %j', (data, link) => {
  expect(parseLink(Buffer.from(data))).toEqual(link);
});
