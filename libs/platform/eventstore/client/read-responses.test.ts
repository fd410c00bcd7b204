import { createRequire } from 'node:module';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type { ResolvedEvent } from '@eventstore/db-client';
import { describe, expect, it } from 'vitest';
import { UnexpectedForm } from '#libs/platform/protobuf/index.ts';
import { decodeResponse } from './read-responses.ts';

const { ReadResp } = streams;
const { RecordedEvent } = ReadResp.ReadEvent;
const { deserializeBinary: generated } = ReadResp;

const { convertGrpcEvent } = createRequire(import.meta.url)('@eventstore/db-client/dist/utils/convertGrpcEvent') as {
  convertGrpcEvent(event: unknown): ResolvedEvent;
};

const MAX_UINT64 = '18446744073709551615';

type AnyRecordedEvent = NonNullable<ResolvedEvent['event']>;

interface Recorded {
  readonly id?: InstanceType<typeof shared.UUID> | null;
  readonly revision?: string;
  readonly position?: string;
  readonly contentType?: string;
  readonly data?: Uint8Array;
  readonly metadata?: Uint8Array;
  readonly stream?: string;
}

const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));
const idOf = (text: string) => new shared.UUID().setString(text);

function recorded(of: Recorded = {}) {
  const event = new RecordedEvent();
  const { id = idOf('0199a8f0-0000-7000-8000-000000000001'), revision = '7', position = '4711' } = of;
  if (id !== null) event.setId(id);
  event.setStreamIdentifier(new shared.StreamIdentifier().setStreamName(Buffer.from(of.stream ?? 'channel-grüße 😀')));
  event.setStreamRevision(revision).setCommitPosition(position).setPreparePosition(position);
  event.getMetadataMap().set('type', 'Tested.v1').set('created', '17000000000001234');
  event.getMetadataMap().set('content-type', of.contentType ?? 'application/json');
  event.setData(of.data ?? json({ text: 'grüße 😀', n: 1 }));
  return event.setCustomMetadata(of.metadata ?? json({ at: '2026-01-31T12:00:00.000Z' }));
}

const responseOf = (event: InstanceType<typeof ReadResp.ReadEvent>) =>
  Buffer.from(new ReadResp().setEvent(event).serializeBinary());

/** What the client makes of a response, in the names of this module. */
function converted(bytes: Buffer): unknown {
  const { event, link } = convertGrpcEvent(generated(bytes).getEvent());
  return { kind: 'event', ...(event && { event: renamed(event) }), ...(link && { link: renamed(link) }) };
}

function renamed({ streamId, revision, position, id, type, data, metadata, created }: AnyRecordedEvent) {
  return {
    stream: streamId,
    revision: Number(revision),
    position,
    id,
    type,
    data,
    metadata,
    createdMs: created.getTime(),
  };
}

function eventWith(of: Recorded) {
  return new ReadResp.ReadEvent().setEvent(recorded(of));
}

describe('responses with an event', () => {
  it.each<[string, InstanceType<typeof ReadResp.ReadEvent>]>([
    ['an event', eventWith({}).setCommitPosition('4711')],
    ['the first event', eventWith({ revision: '0', position: '0' }).setCommitPosition('0')],
    ['without a position', eventWith({}).setNoPosition(new shared.Empty())],
    [
      'a link',
      new ReadResp.ReadEvent()
        .setEvent(recorded())
        .setLink(recorded({ stream: 'link' }))
        .setCommitPosition('1'),
    ],
    ['a link to a deleted event', new ReadResp.ReadEvent().setLink(recorded()).setCommitPosition('1')],
    ['no event', new ReadResp.ReadEvent()],
    ['data without JSON', eventWith({ contentType: 'application/octet-stream', data: Buffer.from([0, 255]) })],
    ['invalid JSON', eventWith({ data: Buffer.from('{'), metadata: Buffer.from('{') })],
    ['no data', eventWith({ data: Buffer.alloc(0), metadata: Buffer.alloc(0) })],
    ['large data', eventWith({ data: json('ü'.repeat(300_000)) })],
    ...['4398046511103', '4398046511104', '9007199254740991', '9007199254740993', MAX_UINT64].map(
      (position): [string, InstanceType<typeof ReadResp.ReadEvent>] => [
        `the position ${position}`,
        eventWith({ position, revision: position }).setCommitPosition(position),
      ],
    ),
  ])('are decoded as by the generated classes: %s', (_, event) => {
    const bytes = responseOf(event);
    expect(decodeResponse(bytes)).toEqual(converted(bytes));
  });

  it.each([
    ['without an id', eventWith({ id: null })],
    ['with an id of two numbers, which no request asks for', eventWith({ id: structuredId() })],
  ])('are refused %s', (_, event) => {
    expect(() => decodeResponse(responseOf(event))).toThrow(UnexpectedForm);
  });

  it('that end early are refused', () => {
    const bytes = responseOf(eventWith({}));
    for (let length = 1; length < bytes.length; length += 7) {
      expect(() => decodeResponse(bytes.subarray(0, length))).toThrow();
    }
  });
});

it.each([
  [
    new ReadResp().setConfirmation(new ReadResp.SubscriptionConfirmation().setSubscriptionId('one')),
    { kind: 'confirmation' },
  ],
  [
    new ReadResp().setCheckpoint(new ReadResp.Checkpoint().setCommitPosition('7').setPreparePosition('6')),
    { kind: 'checkpoint', position: { commit: 7n, prepare: 6n } },
  ],
  [new ReadResp().setStreamNotFound(new ReadResp.StreamNotFound()), { kind: 'missing-stream' }],
  [new ReadResp().setCaughtUp(new ReadResp.CaughtUp()), { kind: 'caught-up' }],
  [new ReadResp().setLastStreamPosition('7'), { kind: 'other' }],
  [new ReadResp(), { kind: 'other' }],
])('other responses are decoded', (response, expected) => {
  expect(decodeResponse(Buffer.from(response.serializeBinary()))).toEqual(expected);
});

function structuredId() {
  const numbers = new shared.UUID.Structured()
    .setMostSignificantBits('-5')
    .setLeastSignificantBits('81985529216486895');
  return new shared.UUID().setStructured(numbers);
}
