/* Hostile frames: each is answered with its error or close code, and leaks no memory. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { asRecord } from '#test/support/log-reader.ts';
import { MEMORY_REPORT_OPTIONS, memoryOf } from '#test/support/memory.ts';
import { startParleyProcess, type ParleyProcess } from '#test/support/parley-process.ts';
import { newChannel, post } from '#test/support/realtime/nodes.ts';
import { frameBytes, OPCODE, type End } from '#test/support/realtime/raw-websocket.ts';
import { errorsIn, openRaw } from '#test/support/realtime/raw-session.ts';
import { rounds } from '#test/support/rounds.ts';

let folder: string;
let parley: ParleyProcess;
let channelId: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'parley-test-hostile-'));
  const env = { NODE_OPTIONS: MEMORY_REPORT_OPTIONS, MEMORY_REPORT: join(folder, 'memory.json') };
  parley = await startParleyProcess({ env });
  await parley.ready();
  channelId = await newChannel(parley.api);
  await post(parley.api, channelId, 'There is something to resume from');
});
afterAll(async () => {
  await parley?.stop();
  await rm(folder, { recursive: true, force: true });
});

interface Attack {
  readonly what: string;
  readonly bytes: () => Buffer;
  /** Codes of the error frames that answer it. */
  readonly errors?: readonly string[];
  /** The close code of the socket; undefined if it stays open. */
  readonly close?: End;
  /** Sent instead of the resume. */
  readonly first?: boolean;
}

const text = (payload: string | Buffer): Buffer => frameBytes({ opcode: OPCODE.text, payload });
const resume = (after: string): Buffer => text(`{"frame":"resume","after":${after}}`);
const times = (count: number, bytes: Buffer): Buffer => Buffer.concat(Array.from({ length: count }, () => bytes));
const begun = frameBytes({ opcode: OPCODE.text, payload: '{"frame":', fin: false });
const fragment = (payload: string): Buffer => frameBytes({ opcode: OPCODE.continuation, payload, fin: false });
const NESTED = 20_000;

const BEYOND = [
  '1002',
  '-1',
  '9223372036854775808',
  '1e400',
  '1.5',
  '"1e3"',
  'null',
  '[1]',
  '18446744073709551616',
  '-0.5',
];

const ATTACKS: readonly Attack[] = [
  { what: 'a frame of 64 KiB and one byte', bytes: () => text('x'.repeat(65_537)), close: 1009 },
  {
    what: 'a frame with a declared length of 2^62 bytes',
    bytes: () => frameBytes({ opcode: OPCODE.text, length: 2n ** 62n }),
    close: 1009,
  },
  {
    what: 'a frame with a declared length of 2^64 - 1 bytes',
    bytes: () => frameBytes({ opcode: OPCODE.text, length: 2n ** 64n - 1n }),
    close: 1009,
  },
  {
    what: 'fragments without an end',
    bytes: () => Buffer.concat([begun, times(3_000, fragment('x'.repeat(64)))]),
    close: 1009,
  },
  {
    what: 'empty fragments without an end',
    bytes: () => Buffer.concat([begun, times(40_000, fragment(''))]),
    close: 1008,
  },
  { what: 'a text that is not UTF-8', bytes: () => text(Buffer.from([0x7b, 0xff, 0xfe, 0x7d])), close: 1007 },
  {
    what: 'a frame without a mask',
    bytes: () => frameBytes({ opcode: OPCODE.text, payload: '{}', masked: false }),
    close: 1002,
  },
  { what: 'a reserved bit', bytes: () => frameBytes({ opcode: OPCODE.text, payload: '{}', rsv: 4 }), close: 1002 },
  { what: 'a reserved opcode', bytes: () => frameBytes({ opcode: 3, payload: '{}' }), close: 1002 },
  { what: 'a reserved control opcode', bytes: () => frameBytes({ opcode: 13 }), close: 1002 },
  {
    what: 'a ping of 126 bytes',
    bytes: () => frameBytes({ opcode: OPCODE.ping, payload: 'x'.repeat(126) }),
    close: 1002,
  },
  {
    what: 'a ping in fragments',
    bytes: () => frameBytes({ opcode: OPCODE.ping, payload: 'x', fin: false }),
    close: 1002,
  },
  { what: 'a binary frame', bytes: () => frameBytes({ opcode: OPCODE.binary, payload: '{}' }), close: 1003 },
  { what: 'bytes that are not frames', bytes: () => Buffer.from('GET / HTTP/1.1\r\nhost: x\r\n\r\n'), close: 1002 },
  { what: 'text that is not JSON', bytes: () => text('{"frame":'), errors: ['invalid_json'] },
  { what: 'an empty text', bytes: () => text(''), errors: ['invalid_json'] },
  {
    what: 'JSON that is not an object',
    bytes: () => times(3, text('[1]')),
    errors: ['invalid_frame', 'invalid_frame', 'invalid_frame'],
  },
  { what: 'a frame of an unknown kind', bytes: () => text('{"frame":"nonsense"}'), errors: ['invalid_frame'] },
  {
    what: 'a frame that only the server sends',
    bytes: () => text('{"frame":"event","seq":1}'),
    errors: ['invalid_frame'],
  },
  { what: 'a frame without a kind', bytes: () => text('{"fame":"ping"}'), errors: ['invalid_frame'] },
  {
    what: 'a frame with __proto__',
    bytes: () => text('{"__proto__":{"frame":"ping"}}'),
    errors: ['invalid_frame'],
  },
  { what: 'arrays in arrays', bytes: () => text('['.repeat(NESTED) + ']'.repeat(NESTED)), errors: ['invalid_json'] },
  {
    what: 'objects in objects, in a command',
    bytes: () =>
      text(`{"frame":"command","id":"1","type":"typing","data":${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}}`),
    errors: ['invalid_json'],
  },
  {
    what: 'a number that a double cannot represent',
    bytes: () => text(`{"frame":"command","id":1e999,"type":"nonsense"}`),
    errors: ['invalid_command'],
  },
  {
    what: 'a command of an unknown type',
    bytes: () => text('{"frame":"command","id":"1","type":"nonsense"}'),
    errors: ['unknown_command'],
  },
  {
    what: 'long frames of an unknown kind',
    bytes: () => times(8, text(JSON.stringify({ frame: 'nonsense', padding: 'x'.repeat(65_000) }))),
    errors: Array.from({ length: 8 }, () => 'invalid_frame'),
  },
  {
    what: 'a command without an id',
    bytes: () => text('{"frame":"command","type":"typing"}'),
    errors: ['invalid_command'],
  },
  { what: 'a second resume', bytes: () => text('{"frame":"resume"}'), errors: ['already_resumed'] },
  ...BEYOND.map((after) => ({
    what: `a resume after ${after}`,
    bytes: () => resume(after),
    errors: ['invalid_resume'],
    close: 4500,
    first: true,
  })),
  {
    what: 'a resume with an unknown member',
    bytes: () => text('{"frame":"resume","aftr":1}'),
    errors: ['invalid_resume'],
    close: 4500,
    first: true,
  },
  { what: 'more frames than are allowed', bytes: () => times(121, text('{"frame":"pong"}')), close: 4008 },
  { what: 'more pongs than are allowed', bytes: () => times(121, frameBytes({ opcode: OPCODE.pong })), close: 4008 },
  {
    what: 'far more pings than are allowed',
    bytes: () => times(500, frameBytes({ opcode: OPCODE.ping })),
    close: 4008,
  },
];

async function attack({ bytes, errors = [], close, first = false }: Attack): Promise<{ errors: string[]; end: End }> {
  const socket = await openRaw(parley, channelId, first ? {} : { resume: { after: 0 } });
  try {
    await socket.write(bytes());
    if (close !== undefined) await socket.closed();
    else {
      await socket.until(() => errorsIn(socket).length >= errors.length);
      // The socket stays open and answers.
      await socket.sendText('{"frame":"ping"}');
      await socket.until(({ texts }) => texts.includes('{"frame":"pong"}'));
    }
    return { errors: errorsIn(socket), end: socket.end };
  } finally {
    socket.destroy();
  }
}

describe('a hostile client', () => {
  it.each(ATTACKS.map((one) => [one.what, one] as const))(
    'gets the right error or close code for %s',
    async (_what, one) => {
      expect(await attack(one)).toEqual({ errors: one.errors ?? [], end: one.close });
    },
  );

  it('leaks no memory in repeated attacks', async () => {
    const count = rounds(5);
    const all = async (times: number): Promise<void> => {
      for (let round = 0; round < times; round++) await Promise.all(ATTACKS.map(attack));
    };
    await all(3);
    const before = await memoryOf(parley.pid, join(folder, 'memory.json'));
    await all(count);
    const after = await memoryOf(parley.pid, join(folder, 'memory.json'));
    // The attacks have sent more than a mebibyte in each round.
    expect(after.heap - before.heap).toBeLessThan(count * 0.4 * 1024 * 1024);
    expect(after.rss - before.rss).toBeLessThan(Math.min(count * 25, 256) * 1024 * 1024);
    expect(asRecord((await parley.api.get(`/api/v1/channels/${channelId}`)).json())['id']).toBe(channelId);
  });

  it('causes no warning or error in the log', () => {
    expect(parley.output()).not.toMatch(/"level":"(warn|error|fatal)"/);
  });
});
