import { describe, expect, it } from 'vitest';
import { streamRevision } from '#libs/kernel/event.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import { logMetadata } from '#test/support/log-events.ts';
import { LogMessages } from './log-message.ts';
import { partitionOf } from './kafkajs/index.ts';

const messages = new LogMessages('a secret of this test only');

const event: StoredEvent = {
  stream: 'channel-1',
  revision: streamRevision(7),
  position: { commit: 18446744073709551615n, prepare: 12n },
  id: '0199a8f0-0000-7000-8000-000000000001',
  type: 'InteractionPosted.v1',
  data: { text: 'grüße \u2028 \u0000', list: [1, null, { deep: true }] },
  metadata: logMetadata('command-1'),
  createdMs: Date.UTC(2026, 0, 31),
};

const place = { topic: 'parley.log', partition: partitionOf(event.stream, 12), partitions: 12 };
const decoded = (message: Parameters<LogMessages['decode']>[0]) => messages.decode(message, place);

interface Change {
  readonly key?: string;
  readonly value?: string;
  readonly headers?: Record<string, string | undefined>;
}

/** A message as Kafka delivers it, as bytes. */
function arrived(change: Change = {}, message: ReturnType<LogMessages['encodeWatermark']> = messages.encode(event)) {
  const { key = null, value, headers } = message;
  const changed = { ...headers, ...change.headers };
  const arrivedKey = change.key ?? key;
  return {
    key: arrivedKey === null ? null : Buffer.from(arrivedKey),
    value: Buffer.from(change.value ?? value ?? ''),
    headers: Object.fromEntries(
      Object.entries(changed).flatMap(([name, text]) => (text === undefined ? [] : [[name, Buffer.from(`${text}`)]])),
    ),
  };
}

describe('messages of the log', () => {
  it('decode to the event that was encoded', () => {
    expect(decoded(arrived())).toEqual(event);
  });

  it('decode to a place alone, where a relay of an earlier version has sent a foreign event', () => {
    const foreign = { ...event, type: 'UserRegistered', metadata: { organizationId: 'acme' } };
    const { stream, revision, position, id, createdMs } = event;
    expect(decoded(arrived({}, messages.encode(foreign)))).toEqual({
      stream,
      revision,
      position,
      id,
      createdMs,
      type: '(foreign)',
      data: null,
      metadata: null,
      foreign: 'metadata',
    });
  });

  it.each([
    ['id', { ce_id: '0199a8f0-0000-7000-8000-000000000002' }],
    ['type', { ce_type: 'InteractionPosted.v2' }],
    ['stream', { ce_subject: 'channel-2' }],
    ['time', { ce_time: '2026-02-01T00:00:00.000Z' }],
    ['revision', { ce_revision: '8' }],
    ['position', { ce_position: '1/1' }],
    ['signature', { ce_signature: 'AAAA' }],
  ])('are refused as forged with another %s', (_, headers) => {
    expect(decoded(arrived({ headers }))).toBe('forged');
  });

  it('are refused as forged with other data, with another key, or signed with another secret', () => {
    expect(decoded(arrived({ value: '{"data":{},"metadata":{}}' }))).toBe('forged');
    expect(decoded(arrived({ key: 'channel-2' }))).toBe('forged');
    expect(new LogMessages('another secret').decode(arrived(), place)).toBe('forged');
  });

  it('are refused as misplaced in all partitions except the one of their key', () => {
    const decodedThere = Array.from({ length: 12 }, (_, partition) =>
      messages.decode(arrived(), { ...place, partition }),
    );
    expect(decodedThere.filter((one) => one === 'misplaced')).toHaveLength(11);
    expect(decodedThere[place.partition]).toEqual(event);
  });

  it.each([
    ['no headers at all', { key: Buffer.from('a'), value: Buffer.from('{}'), headers: {} }],
    ['no value', { ...arrived(), value: null }],
    ['the headers of another source', arrived({ headers: { ce_source: '/another/source' } })],
    ['no signature', arrived({ headers: { ce_signature: undefined } })],
    ['an invalid revision', arrived({ headers: { ce_revision: '-1' } })],
    ['a repeated header', { ...arrived(), headers: { ...arrived().headers, ce_id: ['a', 'b'] } }],
  ])('are refused as foreign with %s', (_, message) => {
    expect(decoded(message)).toBe('foreign');
  });

  it('may have additional headers, which forwarders add', () => {
    expect(decoded(arrived({ headers: { traceparent: '00-1-2-01' } }))).toEqual(event);
  });

  it('cannot be encoded from an event without a position', () => {
    expect(() => messages.encode({ ...event, position: null })).toThrow(TypeError);
  });
});

describe('watermarks', () => {
  const mark = () => messages.encodeWatermark(place, { commit: 7n, prepare: 5n });

  it('decode to the encoded position in their own partition', () => {
    expect(decoded(arrived({}, mark()))).toEqual({ watermark: { commit: 7n, prepare: 5n } });
    expect(mark().partition).toBe(place.partition);
  });

  it('are refused as misplaced in another partition or topic', () => {
    const elsewhere = { ...place, partition: (place.partition + 1) % place.partitions };
    expect(messages.decode(arrived({}, mark()), elsewhere)).toBe('misplaced');
    expect(messages.decode(arrived({}, mark()), { ...place, topic: 'another.log' })).toBe('misplaced');
  });

  it('are refused as forged with another position, or signed with another secret', () => {
    expect(decoded(arrived({ headers: { ce_position: '8/5' } }, mark()))).toBe('forged');
    const foreign = new LogMessages('another secret').encodeWatermark(place, { commit: 7n, prepare: 5n });
    expect(decoded(arrived({}, foreign))).toBe('forged');
  });

  it('are not decoded from a signed event of type parley.watermark', () => {
    const disguised = messages.encode({ ...event, type: 'parley.watermark', stream: `parley.log/${place.partition}` });
    expect(decoded(arrived({}, disguised))).not.toHaveProperty('watermark');
  });
});
