/* Framing, control frames, fragments, UTF-8 and closing, as RFC 6455 has them: the cases of the Autobahn test suite. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { asRecord } from '#test/support/log-reader.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { AUTOBAHN_CASES, bytesOf, type AutobahnCase } from '#test/support/realtime/autobahn-cases.ts';
import { newChannel } from '#test/support/realtime/nodes.ts';
import { closePayload, OPCODE, type End, type RawWebsocket } from '#test/support/realtime/raw-websocket.ts';
import { openRaw } from '#test/support/realtime/raw-session.ts';

let parley: ParleyProcess;
let channelId: string;
beforeAll(async () => {
  parley = await startParleyProcess();
  await parley.ready();
  channelId = await newChannel(parley.api);
}, 60_000);
afterAll(() => parley?.stop(), 40_000);

/** What came behind the greeting, in the words of the cases. */
function heard(socket: RawWebsocket): string[] {
  return socket.frames.flatMap(({ opcode, payload }) => {
    if (opcode === OPCODE.pong) return [`pong:${payload.toString('latin1')}`];
    if (opcode !== OPCODE.text) return [];
    const { frame, id } = asRecord(JSON.parse(payload.toString()));
    return frame === 'error' ? [typeof id === 'string' ? id : '!'] : [];
  });
}

async function run({ frames, chop, expect: expected, close }: AutobahnCase): Promise<{ heard: string[]; end: End }> {
  const socket = await openRaw(parley, channelId, { resume: {} });
  try {
    await socket.write(bytesOf(frames), chop);
    if (close === undefined) {
      await socket.until(() => heard(socket).length >= expected.length);
      await socket.send({ opcode: OPCODE.close, payload: closePayload(1000) });
    }
    const end = await socket.closed();
    return { heard: heard(socket), end };
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
    expect(await run(one)).toEqual({ heard: one.expect, end });
  });
});
