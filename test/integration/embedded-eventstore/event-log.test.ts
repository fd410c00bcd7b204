// The log on its real file: behaviour that the protocol does not show, or only
// after a wait.
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { openEventLog } from '#infra/embedded-eventstore/log/event-log.lmdb.ts';
import type { Commit, EventLog, Page } from '#infra/embedded-eventstore/log/event-log.ts';
import type { ProposedEvent } from '#infra/embedded-eventstore/log/stored-event.ts';

let folder: string;
let log: EventLog;
let shortCommitMs: number | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'event-log-'));
  log = openEventLog(folder, shortCommitMs);
});
afterEach(async () => {
  vi.useRealTimers();
  await log.close();
  await rm(folder, { recursive: true, force: true });
});

async function reopen(): Promise<void> {
  await log.close();
  log = openEventLog(folder, shortCommitMs);
}

const event = (data = '{}'): ProposedEvent => ({
  id: randomUUID(),
  type: 'tested',
  contentType: 'application/json',
  data: Buffer.from(data),
  metadata: Buffer.alloc(0),
});

const append = (stream: string, events: ProposedEvent[]) => log.append({ stream, expected: 'any', events });
const setMetadata = (stream: string, metadata: object) => append(`$$${stream}`, [event(JSON.stringify(metadata))]);

/** The readable revisions of a stream, page by page. */
function revisions(stream: string, direction: 'forwards' | 'backwards' = 'forwards'): number[] {
  const found: number[] = [];
  let from: number | 'end' | undefined = direction === 'forwards' ? 0 : 'end';
  while (from !== undefined) {
    const page: Page = log.readStream({ stream, from, direction, limit: 7 });
    found.push(...page.events.map(({ revision }) => revision));
    from = page.next;
  }
  return found;
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

describe.each([
  { thread: 'its own thread', limitMs: Infinity },
  { thread: "a thread of LMDB's", limitMs: 0 },
])('the log that commits on $thread', ({ limitMs }) => {
  beforeAll(() => {
    shortCommitMs = limitMs;
  });
  afterAll(() => {
    shortCommitMs = undefined;
  });

  test('reads the newest events from every start and in pages of every size, before and after a commit', async () => {
    const positions = (from: number, limit: number): [number[], number | undefined] => {
      const { events, next } = log.readAll({ from, direction: 'forwards', limit });
      return [events.map(({ position }) => position), next];
    };
    await append('a', [event(), event(), event()]);
    expect(positions(2, 10)).toEqual([[2, 3], undefined]);
    expect(positions(3, 10)).toEqual([[3], undefined]);
    expect(positions(1, 10)).toEqual([[1, 2, 3], undefined]);
    expect(positions(2, 1)).toEqual([[2], 3]);
    expect(positions(4, 10)).toEqual([[], undefined]);
    await append('b', [event()]);
    expect(positions(4, 10)).toEqual([[4], undefined]);
    expect(positions(2, 10)).toEqual([[2, 3, 4], undefined]);
    expect(positions(3, 1)).toEqual([[3], 4]);
  });

  test('keeps streams separate across a restart, also after empty appends', async () => {
    await append('nothing-1', []);
    await Promise.all([append('nothing-2', []), append('a', [event('"a"')])]);
    await append('nothing-3', []);
    await append('b', [event('"b"')]);
    await reopen();
    for (const stream of ['c', 'd', 'e']) await append(stream, [event(`"${stream}"`)]);
    for (const stream of ['a', 'b', 'c', 'd', 'e']) {
      const { events } = log.readStream({ stream, from: 0, direction: 'forwards', limit: 10 });
      expect(events.map(({ data }) => data.toString())).toEqual([`"${stream}"`]);
    }
    expect(log.streamInfo('nothing-1')).toEqual({ status: 'missing', lastRevision: undefined });
  });

  test('tells apart names that are longer than a key may be', async () => {
    const name = 'ü'.repeat(3000);
    await append(`${name}1`, [event()]);
    await append(`${name}2`, [event(), event()]);
    await reopen();
    expect(revisions(`${name}1`)).toEqual([0]);
    expect(revisions(`${name}2`)).toEqual([0, 1]);
  });

  test('tells of a commit once, when its events can be read', async () => {
    const commits: Commit[] = [];
    const readable: number[] = [];
    let ofStream = 0;
    log.onCommit((commit) => {
      commits.push(commit);
      readable.push(log.readAll({ from: 'end', direction: 'backwards', limit: 1 }).events[0]?.position ?? 0);
    });
    const end = log.onStreamCommit('a', () => ofStream++);
    await Promise.all([append('a', [event(), event()]), append('b', [event()])]);
    await vi.waitFor(() => expect(commits).toHaveLength(1));
    end();
    await append('a', [event()]);
    await vi.waitFor(() => expect(commits).toHaveLength(2));
    expect(commits.map(({ position }) => position)).toEqual([3, 4]);
    expect(readable).toEqual([3, 4]);
    expect(commits.map(({ streams }) => [...streams])).toEqual([['a', 'b'], ['a']]);
    expect(ofStream).toBe(1);
  });

  test('finishes what it accepted when it is closed, and refuses the rest', async () => {
    const accepted = append('a', [event()]);
    const closed = log.close();
    await expect(append('a', [event()])).rejects.toThrow('stopping');
    expect(await accepted).toMatchObject({ kind: 'written', revision: 0 });
    await closed;
    log = openEventLog(folder, shortCommitMs);
    expect(revisions('a')).toEqual([0]);
  });

  test('ends a page early when its events are large', async () => {
    for (let i = 0; i < 5; i++) await append('large', [event(JSON.stringify('x'.repeat(600_000)))]);
    const page = log.readStream({ stream: 'large', from: 0, direction: 'forwards', limit: 100 });
    expect(page.events).toHaveLength(2);
    expect(page.next).toBe(2);
    expect(revisions('large')).toEqual(range(0, 5));
  });
});

describe('$maxAge', () => {
  const start = Date.UTC(2026, 0, 1);
  const at = (seconds: number) => vi.setSystemTime(start + seconds * 1000);

  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: start });
    await setMetadata('aging', { $maxAge: 60 });
    // One event each second: revision n is written at second n.
    for (const second of range(0, 100)) {
      at(second);
      await append('aging', [event()]);
    }
  });

  test.each(['forwards', 'backwards'] as const)('hides older events, %s', (direction) => {
    const inOrder = (numbers: number[]) => (direction === 'forwards' ? numbers : numbers.toReversed());
    at(50);
    expect(revisions('aging', direction)).toEqual(inOrder(range(0, 100)));
    at(100);
    expect(revisions('aging', direction)).toEqual(inOrder(range(40, 100)));
    at(158.5);
    expect(revisions('aging', direction)).toEqual([99]);
    at(1000);
    expect(revisions('aging', direction)).toEqual([]);
  });

  test('combines with $maxCount: either hides events', async () => {
    await setMetadata('aging', { $maxAge: 60, $maxCount: 10 });
    at(100);
    expect(revisions('aging')).toEqual(range(90, 100));
    at(155);
    expect(revisions('aging')).toEqual(range(95, 100));
  });

  test('is exact when the clock goes back: times never decrease in the log', async () => {
    at(10);
    await append('aging', [event()]);
    const { events } = log.readAll({ from: 'end', direction: 'backwards', limit: 2 });
    expect(events.map(({ createdMs }) => (createdMs - start) / 1000)).toEqual([99, 99]);
    at(155);
    expect(revisions('aging')).toEqual(range(95, 101));
  });
});

describe('a revived stream', () => {
  test('continues its revisions, and keeps its other metadata', async () => {
    await append('s', [event(), event()]);
    await setMetadata('s', { $maxCount: 3, own: 1 });
    await log.deleteStream({ stream: 's', expected: 1 });
    expect(log.streamInfo('s')).toEqual({ status: 'missing', lastRevision: 1 });
    await append('s', [event()]);
    await reopen();
    expect(revisions('s')).toEqual([2]);
    const [metadata] = log.readStream({ stream: '$$s', from: 'end', direction: 'backwards', limit: 1 }).events;
    expect(JSON.parse(metadata?.data.toString() ?? '')).toEqual({ $tb: 2 });
  });

  test('by metadata shows none of its old events', async () => {
    await append('s', [event(), event()]);
    await log.deleteStream({ stream: 's', expected: 'any' });
    await setMetadata('s', { own: 1 });
    expect(log.streamInfo('s').status).toBe('exists');
    expect(revisions('s')).toEqual([]);
    await append('s', [event()]);
    expect(revisions('s')).toEqual([2]);
  });
});

describe('small values', () => {
  test('survive a restart and are listed by prefix, in order', async () => {
    const { keyValue } = log;
    await Promise.all(['b/2', 'a/1', 'b/1', 'c'].map((key) => keyValue.put(key, Buffer.from(key))));
    await keyValue.put('b/1', Buffer.from('newer'));
    await keyValue.delete('b/2');
    await keyValue.delete('never was');
    await reopen();
    const listed = (prefix: string) => log.keyValue.entries(prefix).map(({ key, value }) => [key, String(value)]);
    expect(listed('b/')).toEqual([['b/1', 'newer']]);
    expect(listed('')).toEqual([
      ['a/1', 'a/1'],
      ['b/1', 'newer'],
      ['c', 'c'],
    ]);
    expect(log.keyValue.get('b/2')).toBeUndefined();
  });
});
