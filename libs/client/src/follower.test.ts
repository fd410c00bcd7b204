import { describe, expect, it } from 'vitest';

import { Follower, type Step } from './follower.ts';
import type { ServerFrame } from './frames.ts';

const hello = (head: number): ServerFrame => ({
  frame: 'hello',
  protocol: 'parley.v1',
  session_id: 's',
  principal: { type: 'user', id: 'u' },
  channel_id: 'c',
  head,
  heartbeat_ms: 25_000,
  max_frame_bytes: 65_536,
});
const event = (seq: number, type = 'reaction.added', data: unknown = null): ServerFrame => ({
  frame: 'event',
  actor: null,
  seq,
  type,
  at: '2026-01-01T00:00:00.000Z',
  data,
});
const caughtUp = (seq: number): ServerFrame => ({ frame: 'caught_up', seq });
const ephemeral = (n: number, ttl_ms = 100): ServerFrame => ({ frame: 'ephemeral', key: 'k', n, data: n, ttl_ms });

class Run {
  readonly follower: Follower;
  nowMs = 0;
  constructor(after?: number) {
    this.follower = new Follower({ after, include: ['nested'] });
  }
  steps(...frames: ServerFrame[]): Step[] {
    return frames.flatMap((frame) => this.follower.receive(frame, this.nowMs));
  }
  /** Sequences of the yielded events. */
  seqs(...frames: ServerFrame[]): number[] {
    return this.steps(...frames).flatMap((step) => (step.do === 'event' ? [step.event.seq] : []));
  }
  connect(head: number): Step[] {
    this.follower.connected();
    return this.steps(hello(head));
  }
}

describe('Follower', () => {
  it('resumes after the given sequence, with the given options', () => {
    const run = new Run(7);
    expect(run.connect(9)[0]).toEqual({ do: 'send', frame: { frame: 'resume', after: 7, include: ['nested'] } });
  });

  it('for new events only begins at the head of the first connection, also after reconnections', () => {
    const run = new Run();
    expect(run.connect(9)[0]).toMatchObject({ frame: { after: 9 } });
    expect(run.connect(12)[0]).toMatchObject({ frame: { after: 9 } });
    expect(run.seqs(event(10), event(11), event(12))).toEqual([10, 11, 12]);
  });

  it('yields each event once, in order, over several connections', () => {
    const run = new Run(0);
    run.connect(3);
    expect(run.seqs(event(1), event(2), event(2), event(1))).toEqual([1, 2]);
    expect(run.connect(4)[0]).toMatchObject({ frame: { after: 2 } });
    expect(run.seqs(event(2), event(3), event(4), event(3))).toEqual([3, 4]);
    expect(run.follower.received).toBe(4);
  });

  it('disconnects at a gap, and yields no event after it', () => {
    const run = new Run(0);
    run.connect(5);
    expect(run.steps(event(1), event(3))).toMatchObject([{ do: 'event' }, { do: 'leave', code: 4000 }]);
    expect(run.connect(5)[0]).toMatchObject({ frame: { after: 1 } });
  });

  it('disconnects when the server reports events as sent that did not arrive', () => {
    const run = new Run(3);
    run.connect(5);
    expect(run.steps(event(4), caughtUp(5)).at(-1)).toMatchObject({ do: 'leave' });
    run.connect(5);
    expect(run.steps(event(5), caughtUp(5)).at(-1)).toEqual({ do: 'caught up', seq: 5 });
  });

  it('disconnects on a frame before hello, and on a hello of another protocol', () => {
    const run = new Run(0);
    expect(run.steps(event(1))).toMatchObject([{ do: 'leave' }]);
    // A frame of a later version.
    const other = JSON.parse(JSON.stringify(hello(0)).replace('parley.v1', 'parley.v2')) as ServerFrame;
    expect(run.steps(other)).toMatchObject([{ do: 'leave' }]);
  });

  it('answers pings, and ignores unknown frames', () => {
    const run = new Run(0);
    run.connect(0);
    expect(run.steps({ frame: 'ping' })).toEqual([{ do: 'send', frame: { frame: 'pong' } }]);
    expect(run.steps(JSON.parse('{"frame":"weather","rain":true}') as ServerFrame)).toEqual([]);
  });

  describe('text of an interaction that is being written', () => {
    const delta = (offset: number, text: string): ServerFrame => ({
      frame: 'delta',
      interaction_id: 'i',
      offset,
      text,
    });
    const snapshot = (text: string): ServerFrame => ({ frame: 'snapshot', interaction_id: 'i', text });
    const texts = (steps: readonly Step[]) => steps.flatMap((step) => (step.do === 'draft' ? [step.draft.text] : []));

    it('grows by deltas at its length in UTF-16 code units', () => {
      const run = new Run(0);
      run.connect(0);
      expect(texts(run.steps(delta(0, '🦜'), delta(2, ' says'), delta(7, ' hi')))).toEqual([
        '🦜',
        '🦜 says',
        '🦜 says hi',
      ]);
    });

    it('is unknown after a lost delta, until a snapshot arrives', () => {
      const run = new Run(0);
      run.connect(0);
      expect(texts(run.steps(delta(0, 'ab'), delta(3, 'd'), delta(4, 'e')))).toEqual(['ab']);
      expect(run.follower.drafts.get('i')).toBeUndefined();
      expect(texts(run.steps(snapshot('abcde'), delta(5, 'f')))).toEqual(['abcde', 'abcdef']);
    });

    it('is kept when a delta comes twice, after it or after the snapshot that has it', () => {
      const run = new Run(0);
      run.connect(0);
      expect(texts(run.steps(delta(0, 'ab'), delta(2, 'cd'), delta(2, 'cd'), delta(4, 'e')))).toEqual([
        'ab',
        'abcd',
        'abcde',
      ]);
      expect(texts(run.steps(snapshot('abcdef'), delta(5, 'f')))).toEqual(['abcdef']);
      expect(run.follower.drafts.get('i')).toBe('abcdef');
      // The same place of another text.
      run.steps(delta(5, 'x'));
      expect(run.follower.drafts.get('i')).toBeUndefined();
    });

    it.each(['interaction.completed', 'interaction.failed'])('is deleted by %s', (type) => {
      const run = new Run(0);
      run.connect(0);
      run.steps(delta(0, 'ab'), event(1, type, { id: 'other' }));
      expect([...run.follower.drafts]).toEqual([['i', 'ab']]);
      run.steps(event(2, type, { id: 'i' }));
      expect([...run.follower.drafts]).toEqual([]);
    });
  });

  describe('ephemeral values', () => {
    const values = (steps: readonly Step[]) =>
      steps.flatMap((step) => (step.do === 'ephemeral' ? [step.ephemeral.data] : []));

    it('are yielded only if they are newer', () => {
      const run = new Run(0);
      run.connect(0);
      expect(values(run.steps(ephemeral(1), ephemeral(3), ephemeral(2), ephemeral(3), ephemeral(4)))).toEqual([
        1, 3, 4,
      ]);
    });

    it('may restart their versions after the expiry, and after a reconnection', () => {
      const run = new Run(0);
      run.connect(0);
      expect(values(run.steps(ephemeral(9, 100)))).toEqual([9]);
      run.nowMs = 100;
      expect(values(run.steps(ephemeral(1, 100)))).toEqual([1]);
      run.connect(0);
      expect(values(run.steps(ephemeral(1, 100)))).toEqual([1]);
    });
  });
});
