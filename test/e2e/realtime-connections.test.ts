/* Connections of websockets: framing and closing by RFC 6455, with the cases of the Autobahn test suite; and a slow one. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { eventually } from '#test/support/eventually.ts';
import { asRecord } from '#test/support/log-reader.ts';
import { startParleyHere, type ParleyHere } from '#test/support/parley-here.ts';
import { AUTOBAHN_CASES, bytesOf, type AutobahnCase } from '#test/support/realtime/autobahn-cases.ts';
import { replay } from '#test/support/realtime/expected-frames.ts';
import { newChannel, post } from '#test/support/realtime/nodes.ts';
import { closePayload, OPCODE, type End, type RawWebsocket } from '#test/support/realtime/raw-websocket.ts';
import { openRaw } from '#test/support/realtime/raw-session.ts';
import { problemsOf } from '#test/support/realtime/sequence-checker.ts';
import { Subscriber } from '#test/support/realtime/subscriber.ts';

let parley: ParleyHere;
let channelId: string;
beforeAll(async () => {
  parley = await startParleyHere();
  channelId = await newChannel(parley.api);
});
afterAll(() => parley?.stop(), 40_000);

/** The frames after the hello, in the notation of the cases. */
function received(socket: RawWebsocket): string[] {
  return socket.frames.flatMap(({ opcode, payload }) => {
    if (opcode === OPCODE.pong) return [`pong:${payload.toString('latin1')}`];
    if (opcode !== OPCODE.text) return [];
    const { frame, id } = asRecord(JSON.parse(payload.toString()));
    return frame === 'error' ? [typeof id === 'string' ? id : '!'] : [];
  });
}

async function run({ frames, chop, expect: expected, close }: AutobahnCase): Promise<{ received: string[]; end: End }> {
  const socket = await openRaw(parley, channelId, { resume: {} });
  try {
    await socket.write(bytesOf(frames), chop);
    if (close === undefined) {
      await socket.until(() => received(socket).length >= expected.length);
      await socket.send({ opcode: OPCODE.close, payload: closePayload(1000) });
    }
    const end = await socket.closed();
    return { received: received(socket), end };
  } finally {
    socket.destroy();
  }
}

const GROUPS: readonly (readonly [string, string])[] = [
  ['1', 'messages'],
  ['2', 'pings and pongs'],
  ['3', 'reserved bits'],
  ['4', 'opcodes'],
  ['5', 'fragments'],
  ['6', 'UTF-8'],
  ['7', 'closing'],
  ['9', 'limits'],
];

describe.each(GROUPS)('group %s: %s', (group) => {
  const cases = AUTOBAHN_CASES.filter(({ id }) => id.startsWith(`${group}.`));

  it.each(cases.map((one) => [one.id, one.what, one] as const))('%s: %s', async (_id, _what, one) => {
    const end = one.close === undefined ? 1000 : one.close;
    expect(await run(one)).toEqual({ received: one.expect, end });
  });
});

const LARGE = 'A large text. '.repeat(9_000);
/** More than kernels buffer for a socket, at both of its ends. */
const MOST_POSTS = 600;

/** Frames that were sent live, to all sockets together. */
async function framesSent(): Promise<number> {
  const { text } = await parley.api.get('/metrics');
  return Number(/^\S*realtime_frames_sent_total (\d+)$/m.exec(text)?.[1] ?? 0);
}

describe('a client that does not read', () => {
  it('is closed with 4009 and resumes without a gap, while others receive every event live', async () => {
    const busyId = await newChannel(parley.api);
    const subscribe = (name: string) =>
      new Subscriber({ name, channelId: busyId, after: 0, nodes: [parley.api], texts: new Map() }).start();
    const [slow, ...others] = ['slow', 'one', 'two', 'three'].map(subscribe);
    if (slow === undefined) throw new TypeError('there is no slow client');
    try {
      await eventually(() => [slow, ...others].every(({ live }) => live));
      slow.pause();

      // Each event is sent to all four, until the slow one is closed.
      let [head, sent] = [0, 4];
      for (let posts = 0; sent === 4; posts++) {
        // It answers pings although it reads nothing: on a busy machine it would be closed for that before it is too slow.
        slow.send({ frame: 'pong' });
        if (posts === MOST_POSTS) throw new Error('the slow client was never closed');
        const before = await framesSent();
        head = await post(parley.api, busyId, LARGE);
        await eventually(() => others.every(({ cursor }) => cursor === head));
        sent = (await framesSent()) - before;
      }
      expect(sent).toBe(3);
      slow.resume();
      await eventually(() => slow.sessions[0]?.closed !== undefined);
      expect(slow.sessions[0]?.closed).toMatchObject({ code: 4009 });
      expect(slow.sessions[0]?.frames.length).toBeLessThan(head);

      head = await post(parley.api, busyId, 'Posted while it was disconnected');
      await eventually(() => [slow, ...others].every(({ cursor }) => cursor === head));
      const log = await replay(parley.api, busyId, { include: [], length: head });
      const received = [slow, ...others].map((socket) => ({ ...pick(socket), after: 0 }));
      expect(problemsOf(received, { logs: new Map([[busyId, log]]) })).toEqual([]);
      expect(slow.sessions).toHaveLength(2);
      expect(others.map(({ sessions }) => sessions.length)).toEqual([1, 1, 1]);
    } finally {
      await Promise.all([slow, ...others].map((socket) => socket.stop()));
    }
  }, 90_000);
});

const pick = ({ name, channelId, sessions }: Subscriber) => ({ name, channelId, sessions });
