import shared from '@eventstore/db-client/generated/shared_pb.js';
import statuses from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';

import { decodeAppendSuccess } from './append-success.ts';

const encode = (response: streams.BatchAppendResp): Buffer => Buffer.from(response.serializeBinary());
const answer = (id: string): streams.BatchAppendResp =>
  new streams.BatchAppendResp().setCorrelationId(new shared.UUID().setString(id));
const id = '0198f3aa-7c11-7d55-8e7a-0000000000aa';

test('a success is decoded as by the generated classes, with positions of 64 bits', () => {
  const position = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  fc.assert(
    fc.property(fc.uuid(), fc.maxSafeNat(), fc.option(fc.tuple(position, position)), (correlationId, revision, at) => {
      const success = new streams.BatchAppendResp.Success().setCurrentRevision(`${revision}`);
      if (at === null) success.setNoPosition(new shared.Empty());
      else {
        const [commit, prepare] = at;
        success.setPosition(
          new shared.AllStreamPosition().setCommitPosition(`${commit}`).setPreparePosition(`${prepare}`),
        );
      }
      expect(decodeAppendSuccess(encode(answer(correlationId).setSuccess(success)))).toEqual({
        correlationId,
        result: { kind: 'appended', revision, position: at && { commit: at[0], prepare: at[1] } },
      });
    }),
  );
});

test('errors, ids of another form and damaged answers are left to the generated classes', () => {
  const success = new streams.BatchAppendResp.Success().setCurrentRevision('1');
  const structured = new shared.UUID().setStructured(new shared.UUID.Structured().setMostSignificantBits('1'));
  const whole = encode(answer(id).setSuccess(success));
  expect(decodeAppendSuccess(whole)).not.toBeNull();
  expect(decodeAppendSuccess(encode(answer(id).setError(new statuses.Status())))).toBeNull();
  expect(decodeAppendSuccess(encode(answer(id)))).toBeNull();
  expect(decodeAppendSuccess(encode(new streams.BatchAppendResp().setSuccess(success)))).toBeNull();
  expect(decodeAppendSuccess(encode(answer(id).setCorrelationId(structured).setSuccess(success)))).toBeNull();
  expect(decodeAppendSuccess(whole.subarray(0, -1))).toBeNull();
  // A success whose revision is a text of no characters.
  expect(decodeAppendSuccess(Buffer.concat([encode(answer(id)), Buffer.from([0x1a, 2, 0x0a, 0])]))).toBeNull();
});
