import streams from '@eventstore/db-client/generated/streams_pb.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import './native-base64.ts';

const { ProposedMessage } = streams.BatchAppendReq;

describe('the bytes of a message', () => {
  it('are decoded from base64, and survive serialisation', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 5_000 }), (bytes) => {
        const message = new ProposedMessage();
        message.setData(Buffer.from(bytes).toString('base64'));
        expect(message.getData_asU8()).toEqual(bytes);
        expect(ProposedMessage.deserializeBinary(message.serializeBinary()).getData_asU8()).toEqual(bytes);
      }),
    );
  });

  it('are not copied if they are bytes already', () => {
    const message = new ProposedMessage();
    const bytes = new Uint8Array([0, 255, 128]);
    message.setData(bytes);
    expect(message.getData_asU8()).toBe(bytes);
    expect(new ProposedMessage().getData_asU8()).toHaveLength(0);
  });
});
