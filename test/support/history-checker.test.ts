import { describe, expect, it } from 'vitest';
import { foldChannel } from './channel-fold.ts';
import type { Attempt, Change, Operation } from './history.ts';
import { problemsOf, type Observation } from './history-checker.ts';
import { withEventTwice, withoutEvent, withSwapped } from './history-doctor.ts';
import type { LogEvent } from './log-reader.ts';

/** A sound history: three channels, each operation acknowledged before the next is sent. */
function soundHistory(): Observation {
  const log: LogEvent[] = [];
  const operations: Operation[] = [];
  let clock = 0;
  for (let n = 0; n < 30; n++) {
    const channelId = `c${n % 3}`;
    const change = n < 3 ? ({ kind: 'create', name: `new ${n}` } as const) : changeOf(n, channelId);
    const event = eventOf(change, { channelId, n, revision: Math.floor(n / 3) });
    log.push(event);
    const body = foldChannel(log.filter(({ stream }) => stream === event.stream));
    const answer = { channelId, revision: event.revision, body };
    const attempt = {
      requestId: `request ${n}`,
      sentAt: ++clock,
      settledAt: ++clock,
      outcome: 'acknowledged',
    } as const;
    operations.push({
      change,
      idempotencyKey: n % 2 ? `key ${n}` : null,
      attempts: [{ ...attempt, detail: '', answer }],
    });
  }
  return { operations, log, ...restOf(log) };
}

function restOf(log: readonly LogEvent[]): Pick<Observation, 'reads' | 'listed'> {
  const ids = ['c2', 'c1', 'c0'];
  const reads = new Map(
    ids.map((id) => {
      const events = log.filter(({ stream }) => stream === `channel-${id}`);
      return [id, { revision: events.length - 1, body: foldChannel(events) }] as const;
    }),
  );
  return { reads, listed: ids };
}

function changeOf(n: number, channelId: string): Change {
  if (n % 4 === 0) return { kind: 'meta', channelId, counter: n };
  return n % 4 === 1
    ? { kind: 'participant', channelId, tag: `tag ${n}` }
    : { kind: 'rename', channelId, name: `name ${n}` };
}

function eventOf(
  change: Change,
  { channelId, n, revision }: { channelId: string; n: number; revision: number },
): LogEvent {
  const at = new Date(Date.UTC(2026, 0, 1) + n).toISOString();
  const place = { stream: `channel-${channelId}`, revision, id: `event ${n}` };
  const metadata = { $correlationId: `request ${n}`, at, actor: { type: 'service', id: 'test' } };
  switch (change.kind) {
    case 'create':
      return {
        ...place,
        metadata,
        type: 'ChannelCreated.v1',
        data: { id: channelId, name: change.name, participants: [] },
      };
    case 'rename':
      return { ...place, metadata, type: 'ChannelRenamed.v1', data: { name: change.name } };
    case 'meta':
      return { ...place, metadata, type: 'ChannelMetaDataChanged.v1', data: { metaData: { counter: change.counter } } };
    case 'participant': {
      const participant = { type: 'external_agent', agentMetadata: { tag: change.tag } };
      return { ...place, metadata, type: 'ParticipantAdded.v1', data: { participant } };
    }
  }
}

/** The kinds of the problems that the checker reports for a sound history with one change. */
function kindsOf(doctor: (sound: Observation) => Observation): string[] {
  return [...new Set(problemsOf(doctor(soundHistory())).map((problem) => problem.split(':')[0] ?? ''))].sort();
}

const withLog = (sound: Observation, log: LogEvent[]): Observation => ({ ...sound, log, ...restOf(log) });

function withOutcome(sound: Observation, index: number, change: Partial<Attempt>): Observation {
  const operations = sound.operations.map((operation, at) =>
    at === index
      ? { ...operation, attempts: operation.attempts.map((attempt) => ({ ...attempt, ...change })) }
      : operation,
  );
  return { ...sound, operations };
}

describe('the checker of histories', () => {
  it('reports no problem in a sound history', () => {
    expect(kindsOf((sound) => sound)).toEqual([]);
  });

  it('accepts that a request without an answer was written or not', () => {
    const open = { outcome: 'unknown', answer: null, settledAt: Infinity } as const;
    expect(kindsOf((sound) => withOutcome(sound, 29, open))).toEqual([]);
    expect(kindsOf((sound) => withOutcome(withLog(sound, withoutEvent(sound.log, 29)), 29, open))).toEqual([]);
  });

  it('finds a missing acknowledged event, with or without a gap in the revisions', () => {
    expect(kindsOf((sound) => withLog(sound, withoutEvent(sound.log, 29)))).toEqual(['lost']);
    expect(kindsOf((sound) => withLog(sound, withoutEvent(sound.log, 12)))).toContain('lost');
    expect(kindsOf((sound) => ({ ...sound, log: sound.log.filter((_, index) => index !== 12) }))).toContain('broken');
  });

  it('finds a duplicated event, with the same id or another', () => {
    expect(kindsOf((sound) => withLog(sound, withEventTwice(sound.log, 20)))).toContain('twice');
    expect(kindsOf((sound) => withLog(sound, withEventTwice(sound.log, 20, 'another id')))).toContain('twice');
  });

  it('finds two events of one idempotency key, though two requests made them', () => {
    const kinds = kindsOf((sound) => {
      const [first, ...others] = sound.operations[29]?.attempts ?? [];
      if (!first) throw new Error('no such operation');
      const retry = { ...first, requestId: 'the retry', outcome: 'unknown', answer: null } as const;
      const operations = sound.operations.map((operation, index) =>
        index === 29 ? { ...operation, attempts: [first, ...others, retry] } : operation,
      );
      const log = withEventTwice(sound.log, 29, 'another id').map((event) =>
        event.id === 'another id' ? { ...event, metadata: { ...event.metadata, $correlationId: 'the retry' } } : event,
      );
      return { ...withLog(sound, log), operations };
    });
    expect(kinds).toEqual(['twice']);
  });

  it('finds two events of one channel in the wrong order', () => {
    expect(kindsOf((sound) => withLog(sound, withSwapped(sound.log, 12, 15)))).toContain('reordered');
  });

  it('finds an event without a request, and one that differs from its request', () => {
    const change = (sound: Observation, part: Partial<LogEvent>) =>
      withLog(
        sound,
        sound.log.map((event, index) => (index === 14 ? { ...event, ...part } : event)),
      );
    const metadata = { $correlationId: 'unknown', at: '2026-01-01T00:00:00.014Z' };
    expect(kindsOf((sound) => change(sound, { metadata }))).toContain('foreign');
    expect(kindsOf((sound) => change(sound, { data: { name: 'not asked for' } }))).toContain('foreign');
  });

  it('finds an event whose request was answered that nothing was written', () => {
    expect(kindsOf((sound) => withOutcome(sound, 7, { outcome: 'not_written', answer: null }))).toEqual(['denied']);
  });

  it('finds an answer that shows another state than the log', () => {
    const answer = { channelId: 'c1', revision: 6, body: { id: 'c1', name: 'made up' } };
    expect(kindsOf((sound) => withOutcome(sound, 19, { answer }))).toEqual(['wrong answer']);
  });

  it('finds an answer that no failure explains', () => {
    expect(kindsOf((sound) => withOutcome(sound, 29, { outcome: 'unexpected', detail: '404 not_found' }))).toEqual([
      'unexpected',
    ]);
  });

  it('finds reads that are stale, wrong, missing or made up', () => {
    const read = (id: string, value: { revision: number; body: object } | null) => (sound: Observation) => {
      const reads = new Map(sound.reads);
      if (value === null) reads.delete(id);
      else reads.set(id, { revision: value.revision, body: { ...value.body } });
      return { ...sound, reads };
    };
    expect(kindsOf(read('c1', { revision: 8, body: {} }))).toEqual(['stale']);
    expect(kindsOf(read('c1', { revision: 9, body: { id: 'c1' } }))).toEqual(['wrong read']);
    expect(kindsOf(read('c1', null))).toEqual(['not shown']);
    expect(kindsOf(read('c9', { revision: 0, body: {} }))).toEqual(['made up']);
  });

  it('finds a list that lacks a channel, has one twice, or is out of order', () => {
    for (const listed of [
      ['c2', 'c0'],
      ['c2', 'c1', 'c1', 'c0'],
      ['c1', 'c2', 'c0'],
    ]) {
      expect(kindsOf((sound) => ({ ...sound, listed }))).toEqual(['wrong list']);
    }
  });
});
