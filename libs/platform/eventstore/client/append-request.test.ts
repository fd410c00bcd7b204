import streams from '@eventstore/db-client/generated/streams_pb.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';

import { encodeAppendRequest } from './append-request.ts';

/** Texts of every length that changes the size of a length, and of characters of one to four bytes. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }).filter((value) => value.isWellFormed()),
  fc.constantFrom('x'.repeat(127), 'x'.repeat(128), 'ü'.repeat(70), 'x'.repeat(16_384), '鵬😀'.repeat(9_000)),
);
const request = fc.record({
  correlationId: fc.uuid(),
  stream: text,
  expectedRevision: fc.oneof(fc.constant(NO_EVENTS), fc.maxSafeNat().map(streamRevision)),
  deadlineMs: fc.integer({ min: 0, max: 4_000_000_000_000 }),
  events: fc.array(fc.record({ id: fc.uuid(), type: text, data: text, metadata: text }), { maxLength: 5 }),
});

test('the generated classes read what was encoded', () => {
  fc.assert(
    fc.property(request, (expected) => {
      const decoded = streams.BatchAppendReq.deserializeBinary(encodeAppendRequest(expected));
      const options = decoded.getOptions();
      expect({
        correlationId: decoded.getCorrelationId()?.getString(),
        stream: Buffer.from(options?.getStreamIdentifier()?.getStreamName_asU8() ?? []).toString(),
        expectedRevision: options?.hasNoStream() === true ? NO_EVENTS : Number(options?.getStreamPosition()),
        deadlineMs: options?.getDeadline()?.toDate().getTime(),
        events: decoded.getProposedMessagesList().map((event) => ({
          id: event.getId()?.getString(),
          type: event.getMetadataMap().get('type'),
          data: Buffer.from(event.getData_asU8()).toString(),
          metadata: Buffer.from(event.getCustomMetadata_asU8()).toString(),
        })),
      }).toEqual(expected);
      expect(decoded.getIsFinal()).toBe(true);
      for (const event of decoded.getProposedMessagesList()) {
        expect(event.getMetadataMap().get('content-type')).toBe('application/json');
      }
    }),
    { numRuns: 200 },
  );
});
