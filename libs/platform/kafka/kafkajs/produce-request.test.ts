import { createRequire } from 'node:module';
import type { Message } from 'kafkajs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomFrom } from '#test/support/channel-history.ts';
import { encodeProduce, replaceProduceEncoder, type ProduceParameters } from './produce-request.ts';

const NOW_MS = Date.UTC(2026, 10, 23, 9);
const load = createRequire(import.meta.url);

interface Request {
  readonly apiVersion: number;
  encode(): Promise<{ readonly buffer: Buffer; size(): number }>;
}

/** As kafkajs encodes it. */
async function theirs(parameters: ProduceParameters): Promise<Buffer> {
  const request = load('kafkajs/src/protocol/requests/produce/v7/request') as (of: ProduceParameters) => Request;
  return (await request(parameters).encode()).buffer;
}

const produce = (messages: readonly Message[], more: Partial<ProduceParameters> = {}): ProduceParameters => ({
  acks: -1,
  timeout: 8_000,
  compression: 0,
  producerId: -1,
  topicData: [{ topic: 'parley.log', partitions: [{ partition: 3, messages }] }],
  ...more,
});

beforeEach(() => void vi.useFakeTimers({ now: NOW_MS, toFake: ['Date'] }));
afterEach(() => void vi.useRealTimers());

describe('an encoded request to produce messages', () => {
  it.each<[string, readonly Message[]]>([
    ['a message', [{ key: 'channel-1', value: '{"n":1}', headers: { ce_type: 'Tested.v1' } }]],
    ['a message without a key, and one without a value', [{ value: 'x' }, { key: Buffer.from('k'), value: null }]],
    ['texts around the length that has a byte of its own', [62, 63, 64, 65].map((n) => ({ value: 'x'.repeat(n) }))],
    ['texts with other characters than ASCII', [{ key: 'grüße', value: `ü\u0000😀`, headers: { 'näme 😀': 'wört' } }]],
    ['a header with several values', [{ value: '', headers: { a: ['1', Buffer.from([0, 255])], b: '' } }]],
    ['large values', [{ value: 'ü'.repeat(70_000) }, { value: Buffer.alloc(300_000, 7) }, { value: 'z' }]],
    ['no messages', []],
  ])('with %s has the bytes of kafkajs', async (_, messages) => {
    const parameters = produce(messages);
    expect(encodeProduce(parameters, NOW_MS)).toEqual(await theirs(parameters));
  });

  it('with many topics, partitions and messages has the bytes of kafkajs', async () => {
    const random = randomFrom(11);
    const text = (): string => '{"aß 😀'.repeat(random(40)).slice(0, random(200));
    const messages = (): Message[] =>
      Array.from({ length: 1 + random(90) }, () => ({
        key: random(5) === 0 ? null : text(),
        value: random(3) === 0 ? Buffer.from(text()) : text(),
        headers: Object.fromEntries(Array.from({ length: random(12) }, (_, n) => [`header_${n}`, text()])),
      }));
    const partitions = () =>
      Array.from({ length: 1 + random(12) }, (_, partition) => ({ partition, messages: messages() }));
    for (let round = 0; round < 20; round++) {
      const topicData = ['parley.log', 'parley.events'].map((topic) => ({ topic, partitions: partitions() }));
      const parameters = produce([], { topicData });
      expect(encodeProduce(parameters, NOW_MS).equals(await theirs(parameters)), `round ${round}`).toBe(true);
    }
  });
});

describe('the replaced encoder of kafkajs', () => {
  const definition = load('kafkajs/src/protocol/requests/produce') as {
    protocol(of: { version: number }): (parameters: ProduceParameters) => { request: Request; response: unknown };
  };

  it('encodes all versions with record batches, and leaves the rest of a request as it is', async () => {
    const before = [3, 7].map((version) => definition.protocol({ version })(produce([{ value: 'x' }])));
    replaceProduceEncoder();
    replaceProduceEncoder();
    for (const { request, response } of before) {
      const { apiVersion } = request;
      const now = definition.protocol({ version: apiVersion })(produce([{ value: 'x' }]));
      expect(now.response).toEqual({ ...(response as object), parse: expect.any(Function) });
      expect({ ...now.request, encode: null }).toEqual({
        ...request,
        encode: null,
        expectResponse: expect.any(Function),
      });
      const encoded = await now.request.encode();
      expect(encoded.buffer).toEqual((await request.encode()).buffer);
      expect(encoded.size()).toBe(encoded.buffer.length);
    }
  });

  it.each<[string, Partial<ProduceParameters>]>([
    ['compressed', { compression: 1 }],
    ['of a transaction', { transactionalId: 'one', producerId: 7 }],
    ['of an idempotent producer', { producerId: 7 }],
    ['with times', produce([{ value: 'x', timestamp: '1700000000000' }])],
  ])('leaves requests %s to kafkajs', async (_, more) => {
    const parameters = produce([{ value: 'x' }], more);
    replaceProduceEncoder();
    const { request } = definition.protocol({ version: 7 })(parameters);
    expect((await request.encode()).buffer).toEqual(await theirs(parameters));
  });
});
