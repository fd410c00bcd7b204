import persistent from '@eventstore/db-client/generated/persistent_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { expect, test } from 'vitest';
import { streamRevision } from '#libs/kernel/event.ts';
import { encodeAcknowledgement, encodeJoin, encodeParking, encodeRead, type ReadRequest } from './read-requests.ts';

/** As the generated classes read it, without members that were not set. */
function read(request: ReadRequest) {
  return streams.ReadReq.deserializeBinary(encodeRead(request)).getOptions()?.toObject();
}

const position = { commit: 2n ** 53n - 1n, prepare: 300n };

test.each<[ReadRequest['from'], object]>([
  ['start', { start: {}, end: undefined, revision: '0' }],
  ['end', { start: undefined, end: {}, revision: '0' }],
  [streamRevision(0), { start: undefined, end: undefined, revision: '0' }],
  [streamRevision(Number.MAX_SAFE_INTEGER), { revision: String(Number.MAX_SAFE_INTEGER) }],
])('a read of a stream from %s', (from, expected) => {
  const options = read({ stream: 'channel-grüße', from, direction: 'backwards', wanted: Number.MAX_SAFE_INTEGER });
  expect(options?.stream).toMatchObject(expected);
  expect(Buffer.from(String(options?.stream?.streamIdentifier?.streamName), 'base64').toString()).toBe('channel-grüße');
  expect(options).toMatchObject({
    all: undefined,
    readDirection: streams.ReadReq.Options.ReadDirection.BACKWARDS,
    resolveLinks: false,
    count: String(Number.MAX_SAFE_INTEGER),
    subscription: undefined,
    filter: undefined,
    noFilter: {},
    uuidOption: { structured: undefined, string: {} },
  });
});

test('a read with the events that links lead to', () => {
  expect(read({ stream: 's', from: 'start', resolvesLinks: true, wanted: 1 })).toMatchObject({ resolveLinks: true });
});

test.each<[string, ReadRequest['from'], object]>([
  ['the start', 'start', { start: {}, end: undefined, position: undefined }],
  ['the end', 'end', { start: undefined, end: {}, position: undefined }],
  ['a position', position, { position: { commitPosition: String(position.commit), preparePosition: '300' } }],
])('a read of all streams from %s', (_, from, expected) => {
  const options = read({ from, wanted: 1 });
  expect(options?.all).toMatchObject(expected);
  expect(options).toMatchObject({ stream: undefined, readDirection: 0, count: '1', subscription: undefined });
});

test.each([
  [['channel-', 'key-'], { regex: '', prefixList: ['channel-', 'key-'] }],
  ['all' as const, { regex: '^[^$]', prefixList: [] }],
])('a subscription to the streams %s', (streamPrefixes, streamIdentifier) => {
  expect(read({ from: position, wanted: { streamPrefixes } })).toMatchObject({
    subscription: {},
    count: '0',
    noFilter: undefined,
    filter: { streamIdentifier, eventType: undefined, max: 256, count: undefined, checkpointintervalmultiplier: 1 },
  });
});

test('requests of a member of a consumer group', () => {
  const decode = (bytes: Buffer) => persistent.ReadReq.deserializeBinary(bytes).toObject();
  expect(decode(encodeJoin('grüße', 300)).options).toEqual({
    streamIdentifier: undefined,
    all: {},
    groupName: 'grüße',
    bufferSize: 300,
    uuidOption: { structured: undefined, string: {} },
  });
  expect(decode(encodeAcknowledgement(['one', 'two'])).ack?.idsList.map(({ string }) => string)).toEqual([
    'one',
    'two',
  ]);
  expect(decode(encodeParking('one', 'it is broken')).nack).toMatchObject({
    idsList: [{ string: 'one' }],
    action: persistent.ReadReq.Nack.Action.PARK,
    reason: 'it is broken',
  });
});
