import fc from 'fast-check';
import { expect, it } from 'vitest';

import { Follower, type Step } from './follower.ts';
import type { ServerFrame } from './frames.ts';

/** What a connection does with an event: sends it correctly, or with a fault. */
const fault = fc.constantFrom('none', 'none', 'skip', 'repeat', 'back');
const connection = fc.record({ faults: fc.array(fault, { minLength: 1, maxLength: 30 }), grows: fc.nat(10) });

it('yields each event once and in order, whatever connections skip, repeat or truncate', () => {
  fc.assert(
    fc.property(fc.nat(20), fc.array(connection, { maxLength: 20 }), (before, connections) => {
      const run = new ServerRun(before);
      for (const { faults, grows } of connections) {
        run.connect(faults);
        run.head += grows;
      }
      run.connect([]);
      expect(run.given).toEqual(Array.from({ length: run.head }, (_, index) => index + 1));
    }),
    { numRuns: 2_000 },
  );
});

/** A server with a channel, and the follower that connects to it. */
class ServerRun {
  readonly given: number[] = [];
  head: number;
  readonly #follower = new Follower({ after: 0, include: [] });

  constructor(head: number) {
    this.head = head;
  }

  /** @param faults one for each event; the connection breaks after the last one. Without any it works */
  connect(faults: readonly string[]): void {
    this.#follower.connected();
    const [resume] = this.#hear(hello(this.head));
    let seq = resume?.do === 'send' && resume.frame.frame === 'resume' ? (resume.frame.after ?? 0) : this.head;
    for (let index = 0; seq < this.head && (faults.length === 0 || index < faults.length); index++) {
      const what = faults[index];
      seq = Math.max(1, what === 'skip' ? seq + 2 : what === 'repeat' ? seq : what === 'back' ? seq - 2 : seq + 1);
      if (this.#hear(event(seq)).some((step) => step.do === 'leave')) return;
    }
    if (faults.length === 0) expect(this.#hear({ frame: 'caught_up', seq: this.head })).toMatchObject([{ seq }]);
  }

  #hear(frame: ServerFrame): readonly Step[] {
    const steps = this.#follower.receive(frame, 0);
    for (const step of steps) if (step.do === 'event') this.given.push(step.event.seq);
    return steps;
  }
}

function hello(head: number): ServerFrame {
  const principal = { type: 'user', id: 'u' } as const;
  const more = { session_id: 's', channel_id: 'c', principal, heartbeat_ms: 25_000, max_frame_bytes: 65_536 };
  return { frame: 'hello', protocol: 'parley.v1', head, ...more };
}

function event(seq: number): ServerFrame {
  return { frame: 'event', seq, type: 'unknown', at: '2026-01-01T00:00:00.000Z', actor: null, data: null };
}
