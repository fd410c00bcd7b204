import { Writable } from 'node:stream';
import { setImmediate as nextIteration } from 'node:timers/promises';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { describe, expect, test } from 'vitest';
import type { LogSource } from '../log/event-log.ts';
import { encodeStoredEvent, StoredEvent } from '../log/stored-event.ts';
import type { FilterOptions } from './filter.ts';
import { Outgoing } from './outgoing.ts';
import { type ReadPlan, subscribe } from './read.ts';
import { eventResponse } from './read-responses.ts';

/** The sending side of a call whose client reads on demand. */
class Client extends Writable {
  cancelled = false;
  readonly received: string[] = [];
  isReading = true;
  #continue: (() => void) | undefined;

  constructor() {
    super({ objectMode: true, highWaterMark: 4 });
  }

  override _write(message: Buffer, _encoding: string, done: () => void): void {
    this.received.push(describeResponse(message));
    if (this.isReading) done();
    else this.#continue = done;
  }

  read(): void {
    this.isReading = true;
    this.#continue?.();
  }
}

function describeResponse(message: Buffer): string {
  const response = streams.ReadResp.deserializeBinary(message);
  if (response.hasEvent()) return `event ${response.getEvent()?.getCommitPosition()}`;
  if (response.hasCheckpoint()) return `checkpoint ${response.getCheckpoint()?.getCommitPosition()}`;
  return response.hasCaughtUp() ? 'caught up' : 'confirmation';
}

function eventAt(position: number): StoredEvent {
  const type = position % 10 === 0 ? 'tenth' : 'other';
  const event = { id: crypto.randomUUID(), type, contentType: 'application/json' };
  const place = { stream: 's', revision: position - 1, position, createdMs: 1 };
  return new StoredEvent(encodeStoredEvent({ ...event, data: Buffer.alloc(0), metadata: Buffer.alloc(0) }, place));
}

/** Events at positions 1 to `end`; counts the events that were read. */
function source(end: number) {
  const listeners = new Set<() => void>();
  const state = { end, looked: 0 };
  const readSource: LogSource = {
    page: (from, _direction, limit) => {
      const first = Math.max(1, Number(from));
      const count = Math.max(0, Math.min(limit, state.end - first + 1));
      state.looked += count;
      const next = first + count;
      return {
        events: Array.from({ length: count }, (_, i) => eventAt(first + i)),
        next: next <= state.end ? next : undefined,
      };
    },
    offsetOf: (event) => event.position,
    end: () => state.end + 1,
    onCommit: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const commit = (newEnd: number) => {
    state.end = newEnd;
    for (const listener of listeners) listener();
  };
  return { readSource, state, listeners, commit };
}

function plan(readSource: LogSource, from: ReadPlan['from'], filter?: FilterOptions): ReadPlan {
  const encode = (event: StoredEvent) => eventResponse({ event });
  return { source: readSource, stream: undefined, from, direction: 'forwards', filter, sendsPositions: false, encode };
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextIteration();
}

const tenths: FilterOptions = { matches: (event) => event.type === 'tenth', checkpointInterval: 25 };

describe('a subscription', () => {
  test('confirms, sends the events after its start, reports that it caught up, then sends each commit', async () => {
    const { readSource, commit } = source(3);
    const client = new Client();
    void subscribe(plan(readSource, 1), new Outgoing(client));
    await turns(5);
    commit(4);
    await turns(5);
    expect(client.received).toEqual(['confirmation', 'event 2', 'event 3', 'caught up', 'event 4']);
    client.destroy();
  });

  test('misses no commit between reading and waiting', async () => {
    const { readSource, commit, state } = source(0);
    const page = readSource.page;
    const client = new Client();
    readSource.page = (from, direction, limit) => {
      const result = page(from, direction, limit);
      // Right after the page was read, once.
      if (state.end === 0) commit(1);
      return result;
    };
    void subscribe(plan(readSource, undefined), new Outgoing(client));
    await turns(5);
    expect(client.received).toContain('event 1');
    client.destroy();
  });

  test('stops reading while its client does not read', async () => {
    const { readSource, state } = source(100_000);
    const client = new Client();
    client.isReading = false;
    void subscribe(plan(readSource, undefined), new Outgoing(client));
    await turns(200);
    const looked = state.looked;
    expect(looked).toBeLessThan(200);
    expect(client.writableLength).toBeLessThanOrEqual(client.writableHighWaterMark);
    client.read();
    await turns(20);
    expect(state.looked).toBeGreaterThan(looked);
    client.destroy();
  });

  test('ends with its call and unsubscribes from the log', async () => {
    const { readSource, listeners } = source(1);
    const client = new Client();
    const done = subscribe(plan(readSource, undefined), new Outgoing(client));
    await turns(3);
    expect(listeners.size).toBe(1);
    client.emit('cancelled');
    await done;
    expect(listeners.size).toBe(0);
  });
});

describe('a filtered subscription', () => {
  test('sends a checkpoint after each interval of considered events, and one when it has caught up', async () => {
    const { readSource, commit } = source(60);
    const client = new Client();
    void subscribe(plan(readSource, undefined, tenths), new Outgoing(client));
    await turns(20);
    commit(76);
    await turns(20);
    const event = (position: number) => `event ${position}`;
    expect(client.received).toEqual([
      'confirmation',
      ...[10, 20].map(event),
      'checkpoint 25',
      ...[30, 40, 50].map(event),
      'checkpoint 50',
      event(60),
      'checkpoint 60',
      'caught up',
      event(70),
    ]);
    commit(85);
    await turns(20);
    expect(client.received.slice(-2)).toEqual(['event 80', 'checkpoint 85']);
    client.destroy();
  });

  test('from the end of a log sends a checkpoint there', async () => {
    const { readSource } = source(7);
    const client = new Client();
    void subscribe(plan(readSource, 'end', tenths), new Outgoing(client));
    await turns(5);
    expect(client.received).toEqual(['confirmation', 'checkpoint 7', 'caught up']);
    client.destroy();
  });
});
