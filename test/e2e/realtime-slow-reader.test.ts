/* One reader that does not read costs itself its socket, and the others nothing. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { replay } from '#test/support/realtime/expected-frames.ts';
import { newChannel, post } from '#test/support/realtime/nodes.ts';
import { problemsOf } from '#test/support/realtime/sequence-checker.ts';
import { Subscriber } from '#test/support/realtime/subscriber.ts';

let parley: ParleyProcess;
beforeAll(async () => {
  parley = await startParleyProcess();
  await parley.ready();
}, 60_000);
afterAll(() => parley?.stop(), 40_000);

const LARGE = 'A large text. '.repeat(9_000);
/** More than kernels keep for a socket, at both of its ends. */
const MOST_POSTS = 600;

/** Frames that were written live, to all sockets together. */
async function framesSent(): Promise<number> {
  const { text } = await parley.api.get('/metrics');
  return Number(/^\S*realtime_frames_sent_total (\d+)$/m.exec(text)?.[1] ?? 0);
}

describe('a reader that does not read', () => {
  it('is closed with 4009 and resumes completely, while the others are told everything as it happens', async () => {
    const channelId = await newChannel(parley.api);
    const subscribe = (name: string) =>
      new Subscriber({ name, channelId, after: 0, nodes: [parley.api], texts: new Map() }).start();
    const [slow, ...others] = ['slow', 'one', 'two', 'three'].map(subscribe);
    if (slow === undefined) throw new TypeError('there is a slow one');
    try {
      await eventually(() => [slow, ...others].every(({ live }) => live));
      slow.pause();

      // Each event is written to all four, until the slow one has been given up.
      let [head, given] = [0, 4];
      for (let posts = 0; given === 4; posts++) {
        if (posts === MOST_POSTS) throw new Error('the slow reader was never given up');
        const before = await framesSent();
        head = await post(parley.api, channelId, LARGE);
        await eventually(() => others.every(({ cursor }) => cursor === head));
        given = (await framesSent()) - before;
      }
      expect(given).toBe(3);
      slow.resume();
      await eventually(() => slow.sessions[0]?.closed !== undefined);
      expect(slow.sessions[0]?.closed).toMatchObject({ code: 4009 });
      expect(slow.sessions[0]?.frames.length).toBeLessThan(head);

      head = await post(parley.api, channelId, 'What came while it was away');
      await eventually(() => [slow, ...others].every(({ cursor }) => cursor === head));
      const log = await replay(parley.api, channelId, { include: [], length: head });
      const received = [slow, ...others].map((socket) => ({ ...pick(socket), after: 0 }));
      expect(problemsOf(received, { logs: new Map([[channelId, log]]) })).toEqual([]);
      expect(slow.sessions).toHaveLength(2);
      expect(others.map(({ sessions }) => sessions.length)).toEqual([1, 1, 1]);
    } finally {
      await Promise.all([slow, ...others].map((socket) => socket.stop()));
    }
  }, 90_000);
});

const pick = ({ name, channelId, sessions }: Subscriber) => ({ name, channelId, sessions });
