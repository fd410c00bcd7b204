import { describe, expect, test } from 'vitest';
import { encodeStoredEvent, StoredEvent } from '../log/stored-event.ts';
import type { Message } from './message.ts';
import { type Candidate, createStrategy } from './strategies.ts';

function message(stream: string, type = 'event', data = '', metadata = ''): Message {
  const proposed = {
    id: 'id',
    type,
    contentType: 'application/octet-stream',
    data: Buffer.from(data),
    metadata: Buffer.from(metadata),
  };
  const event = new StoredEvent(encodeStoredEvent(proposed, { stream, revision: 0, position: 1, createdMs: 0 }));
  return { kind: 'read', id: 'id', event, link: undefined, retryCount: 0, offset: 0 };
}

const consumer = (id: string, hasRoom = true): Candidate => ({ id, hasRoom });
const streams = Array.from({ length: 300 }, (_, n) => `stream-${n}`);

describe('round robin', () => {
  test('takes turns and skips full consumers', () => {
    const strategy = createStrategy('RoundRobin');
    const [a, b, c] = [consumer('a'), consumer('b', false), consumer('c')];
    const chosen = [1, 2, 3, 4].map(() => strategy.choose(message('s'), [a, b, c])?.id);
    expect(chosen).toEqual(['a', 'c', 'a', 'c']);
  });

  test('continues after the last consumer has left', () => {
    const strategy = createStrategy('RoundRobin');
    const [a, b] = [consumer('a'), consumer('b')];
    strategy.choose(message('s'), [a, b]);
    expect(strategy.choose(message('s'), [b])?.id).toBe('b');
  });
});

describe('dispatch to single', () => {
  test('uses the first consumer until it is full', () => {
    const strategy = createStrategy('DispatchToSingle');
    expect(strategy.choose(message('s'), [consumer('a'), consumer('b')])?.id).toBe('a');
    expect(strategy.choose(message('s'), [consumer('a', false), consumer('b')])?.id).toBe('b');
    expect(strategy.choose(message('s'), [consumer('a', false), consumer('b', false)])).toBeUndefined();
  });
});

describe('pinned', () => {
  const strategy = createStrategy('Pinned');
  const all = ['a', 'b', 'c'].map((id) => consumer(id));
  const assign = (consumers: Candidate[]) =>
    new Map(streams.map((s) => [s, strategy.choose(message(s), consumers)?.id]));

  test('spreads streams over all consumers', () => {
    const counts = Map.groupBy(assign(all).values(), (id) => id);
    expect(counts.size).toBe(3);
    for (const streamsOfConsumer of counts.values()) expect(streamsOfConsumer.length).toBeGreaterThan(50);
  });

  test('a consumer that leaves moves only its own streams', () => {
    const [before, after] = [assign(all), assign(all.slice(0, 2))];
    for (const stream of streams.filter((s) => before.get(s) !== 'c'))
      expect(after.get(stream)).toBe(before.get(stream));
  });

  test('events wait for their full consumer and do not block others', () => {
    const assigned = assign(all);
    const stream = streams.find((s) => assigned.get(s) === 'a') ?? '';
    expect(strategy.choose(message(stream), [consumer('a', false), consumer('b'), consumer('c')])).toBeUndefined();
    expect(strategy.waitsInLine).toBe(false);
  });

  test('a link is pinned like its target', () => {
    const assigned = assign(all);
    for (const stream of streams.slice(0, 50)) {
      const link = strategy.choose(message('links', '$>', `7@${stream}`), all);
      expect(link?.id).toBe(assigned.get(stream));
    }
  });
});

describe('pinned by correlation', () => {
  const strategy = createStrategy('PinnedByCorrelation');
  const all = ['a', 'b', 'c'].map((id) => consumer(id));

  test('events of one correlation go to one consumer, whatever their streams', () => {
    for (const id of ['x', 'y', 'z', 'w']) {
      const metadata = JSON.stringify({ $correlationId: id });
      const chosen = streams.map((stream) => strategy.choose(message(stream, 'event', '', metadata), all)?.id);
      expect(new Set(chosen).size).toBe(1);
    }
  });

  test.each(['', 'null', '{}', '{"$correlationId"', '\u0000'])(
    'events without one are pinned by stream (%j)',
    (metadata) => {
      const chosen = streams.map((stream) => strategy.choose(message(stream, 'event', '', metadata), all)?.id);
      expect(new Set(chosen).size).toBe(3);
      expect(streams.map((stream) => strategy.choose(message(stream), all)?.id)).toEqual(chosen);
    },
  );
});
