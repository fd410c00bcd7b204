/**
 * The cases of the public Autobahn test suite, groups 1 to 7 and 9, by its numbers, for a server that speaks JSON
 * and echoes nothing. What Autobahn sends as a message to be echoed, these send as the id of a command without a
 * type: the server's refusal names the id, and so has understood every byte of it. Messages are at
 * most 64 KiB long, and binary ones are refused.
 */
import { closePayload, frameBytes, OPCODE, type FrameToSend } from './raw-websocket.ts';

export interface AutobahnCase {
  readonly id: string;
  readonly what: string;
  readonly frames: readonly FrameToSend[];
  /** Bytes of each write; by default everything is written at once. */
  readonly chop?: number;
  /** What must come: ids of refused commands, `!` for the refusal of something without an id, `pong:` payloads. */
  readonly expect: readonly string[];
  /** The code that the server closes with; undefined where the client closes at the end, with 1000. */
  readonly close?: number | null;
}

const text = (payload: string | Buffer, rest: Partial<FrameToSend> = {}): FrameToSend => ({
  opcode: OPCODE.text,
  payload,
  ...rest,
});
const more = (payload: string | Buffer, fin: boolean): FrameToSend => ({ opcode: OPCODE.continuation, payload, fin });
const ping = (payload: string | Buffer = '', rest: Partial<FrameToSend> = {}): FrameToSend => ({
  opcode: OPCODE.ping,
  payload,
  ...rest,
});
const pong = (payload: string | Buffer = '', rest: Partial<FrameToSend> = {}): FrameToSend => ({
  opcode: OPCODE.pong,
  payload,
  ...rest,
});
const close = (payload: string | Buffer = ''): FrameToSend => ({ opcode: OPCODE.close, payload });

const HEAD = '{"frame":"command","id":"';
const TAIL = '"}';

/** A message that is answered with `id`, padded to `bytes`. */
export function echo(id: string, bytes?: number): string {
  const message = JSON.stringify({ frame: 'command', id });
  if (bytes === undefined) return message;
  const open = `${message.slice(0, -1)},"data":"`;
  return `${open}${'*'.repeat(bytes - Buffer.byteLength(open) - 2)}"}`;
}

/** A message with these bytes as they are in the id. */
function raw(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(HEAD), bytes, Buffer.from(TAIL)]);
}

const LIMIT = 65_536;
const SIZES = [125, 126, 127, 128, 65_535, LIMIT];

const group1: AutobahnCase[] = [
  { id: '1.1.1', what: 'an empty text message, which is no JSON', frames: [text('')], expect: ['!'] },
  ...SIZES.map((size, index) => ({
    id: `1.1.${index + 2}`,
    what: `a text message of ${size} bytes`,
    frames: [text(echo('sized', size))],
    expect: ['sized'],
  })),
  {
    id: '1.1.8',
    what: 'a text message of 65,536 bytes in chops of 997',
    frames: [text(echo('sized', LIMIT))],
    chop: 997,
    expect: ['sized'],
  },
  ...[0, ...SIZES].map((size, index) => ({
    id: `1.2.${index + 1}`,
    what: `a binary message of ${size} bytes`,
    frames: [{ opcode: OPCODE.binary, payload: Buffer.alloc(size, 0xfe) }],
    expect: [],
    close: 1003,
  })),
];

const group2: AutobahnCase[] = [
  { id: '2.1', what: 'a ping without payload', frames: [ping()], expect: ['pong:'] },
  { id: '2.2', what: 'a ping with a text', frames: [ping('Hello, world!')], expect: ['pong:Hello, world!'] },
  {
    id: '2.3',
    what: 'a ping with bytes that are no text',
    frames: [ping(Buffer.from([0, 0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0, 0xff]))],
    expect: [`pong:${Buffer.from([0, 0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0, 0xff]).toString('latin1')}`],
  },
  { id: '2.4', what: 'a ping of 125 bytes', frames: [ping('*'.repeat(125))], expect: [`pong:${'*'.repeat(125)}`] },
  { id: '2.5', what: 'a ping of 126 bytes', frames: [ping('*'.repeat(126))], expect: [], close: 1002 },
  {
    id: '2.6',
    what: 'a ping of 125 bytes, byte by byte',
    frames: [ping('*'.repeat(125))],
    chop: 1,
    expect: [`pong:${'*'.repeat(125)}`],
  },
  { id: '2.7', what: 'an unsolicited pong', frames: [pong()], expect: [] },
  { id: '2.8', what: 'an unsolicited pong, with payload', frames: [pong('unasked')], expect: [] },
  {
    id: '2.9',
    what: 'an unsolicited pong, then a ping',
    frames: [pong('unasked'), ping('asked')],
    expect: ['pong:asked'],
  },
  ...[undefined, 1].map((chop, index) => ({
    id: `2.${10 + index}`,
    what: `ten pings${chop === undefined ? '' : ', byte by byte'}`,
    frames: Array.from({ length: 10 }, (_, n) => ping(`payload ${n}`)),
    ...(chop !== undefined && { chop }),
    expect: Array.from({ length: 10 }, (_, n) => `pong:payload ${n}`),
  })),
];

const afterText = (bad: FrameToSend): FrameToSend[] => [text(echo('first')), bad, ping('after')];

const group3: AutobahnCase[] = [
  { id: '3.1', what: 'reserved bits 1', frames: [text(echo('never'), { rsv: 1 })], expect: [], close: 1002 },
  ...[
    { rsv: 2, chop: undefined, how: '' },
    { rsv: 3, chop: 48, how: ', in chops' },
    { rsv: 4, chop: 1, how: ', byte by byte' },
  ].map(({ rsv, chop, how }, index) => ({
    id: `3.${index + 2}`,
    what: `a good message, then reserved bits ${rsv}${how}`,
    frames: afterText(text(echo('never'), { rsv })),
    ...(chop !== undefined && { chop }),
    expect: ['first'],
    close: 1002,
  })),
  {
    id: '3.5',
    what: 'a binary message with reserved bits 5',
    frames: [{ opcode: OPCODE.binary, payload: Buffer.alloc(24), rsv: 5 }],
    expect: [],
    close: 1002,
  },
  { id: '3.6', what: 'a ping with reserved bits 6', frames: [ping('x', { rsv: 6 })], expect: [], close: 1002 },
  {
    id: '3.7',
    what: 'a close with reserved bits 7',
    frames: [{ ...close(closePayload(1000)), rsv: 7 }],
    expect: [],
    close: 1002,
  },
];

const group4: AutobahnCase[] = [
  [3, 4, 5, 6, 7],
  [11, 12, 13, 14, 15],
].flatMap((opcodes, set) =>
  opcodes.map((opcode, index) => ({
    id: `4.${set + 1}.${index + 1}`,
    what: `reserved opcode ${opcode}${index > 1 ? ' behind a good message' : ''}`,
    frames: index > 1 ? afterText({ opcode, payload: 'x' }) : [{ opcode, payload: index === 0 ? '' : 'x' }],
    ...(index > 2 && { chop: 1 }),
    expect: index > 1 ? ['first'] : [],
    close: 1002,
  })),
);

const [half, otherHalf] = [echo('fragmented').slice(0, 30), echo('fragmented').slice(30)];
const fragments = [text(half, { fin: false }), more(otherHalf, true)];
const interrupted = [text(half, { fin: false }), ping('within'), more(otherHalf, true)];
const CHOPS = [
  { chop: undefined, how: '' },
  { chop: 20, how: ', in chops' },
  { chop: 1, how: ', byte by byte' },
];
const inChops = (first: number, what: string, of: Pick<AutobahnCase, 'frames' | 'expect' | 'close'>): AutobahnCase[] =>
  CHOPS.map(({ chop, how }, index) => ({
    id: `5.${first + index}`,
    what: what + how,
    ...of,
    ...(chop !== undefined && { chop }),
  }));
const inFive = (between: boolean): FrameToSend[] =>
  Array.from({ length: 5 }, (_, n) => {
    const message = echo('five');
    const size = Math.ceil(message.length / 5);
    const part = message.slice(n * size, (n + 1) * size);
    const fragment = n === 0 ? text(part, { fin: false }) : more(part, n === 4);
    return between && (n === 1 || n === 3) ? [fragment, ping(`ping ${n}`)] : [fragment];
  }).flat();

const group5: AutobahnCase[] = [
  {
    id: '5.1',
    what: 'a ping in fragments',
    frames: [ping('a', { fin: false }), more('b', true)],
    expect: [],
    close: 1002,
  },
  {
    id: '5.2',
    what: 'a pong in fragments',
    frames: [pong('a', { fin: false }), more('b', true)],
    expect: [],
    close: 1002,
  },
  ...inChops(3, 'a text in two fragments', { frames: fragments, expect: ['fragmented'] }),
  ...inChops(6, 'a ping between two fragments', { frames: interrupted, expect: ['pong:within', 'fragmented'] }),
  ...inChops(9, 'a last fragment of nothing, then a text', {
    frames: [more('x', true), text(echo('never'))],
    expect: [],
    close: 1002,
  }),
  ...inChops(12, 'a fragment of nothing, then a text', {
    frames: [more('x', false), text(echo('never'))],
    expect: [],
    close: 1002,
  }),
  {
    id: '5.15',
    what: 'a text in two fragments, then a fragment of nothing, then a text',
    frames: [...fragments, more('x', false), text(echo('never'))],
    expect: ['fragmented'],
    close: 1002,
  },
  ...[false, true].map((fin, index) => ({
    id: `5.${16 + index}`,
    what: `twice: a ${fin ? 'last ' : ''}fragment of nothing, then a text in fragments`,
    frames: [more('x', fin), ...fragments, more('x', fin), ...fragments],
    expect: [],
    close: 1002,
  })),
  {
    id: '5.18',
    what: 'a text of which the second fragment begins another one',
    frames: [text(half, { fin: false }), text(otherHalf)],
    expect: [],
    close: 1002,
  },
  {
    id: '5.19',
    what: 'five fragments, pings between them',
    frames: inFive(true),
    expect: ['pong:ping 1', 'pong:ping 3', 'five'],
  },
  {
    id: '5.20',
    what: 'five fragments, pings between them, in chops',
    frames: inFive(true),
    chop: 16,
    expect: ['pong:ping 1', 'pong:ping 3', 'five'],
  },
];

const GREEK = 'Hello-µ@ßöäüàá-UTF-8!! κόσμε 🚀';
/** A message in fragments of so many bytes. */
function inPieces(message: Buffer, size: number): FrameToSend[] {
  const count = Math.ceil(message.length / size);
  return Array.from({ length: count }, (_, n) => {
    const part = message.subarray(n * size, (n + 1) * size);
    return n === 0 ? text(part, { fin: count === 1 }) : more(part, n === count - 1);
  });
}

/** Byte sequences by Autobahn's numbers; true where they are UTF-8. */
const UTF8: readonly (readonly [id: string, hex: string, valid: boolean])[] = [
  ['6.3.1', 'cebae1bdb9cf83cebcceb5eda080656469746564', false],
  ['6.5.1', 'cebae1bdb9cf83cebcceb5', true],
  ['6.5.2', 'cebae1bdb9cf83cebcceb56974', true],
  ['6.6.1', 'ce', false],
  ['6.6.2', 'ceba', true],
  ['6.6.3', 'cebae1', false],
  ['6.6.4', 'cebae1bd', false],
  ['6.6.5', 'cebae1bdb9', true],
  ['6.6.6', 'cebae1bdb9cf', false],
  ['6.6.7', 'cebae1bdb9cf83', true],
  ['6.6.8', 'cebae1bdb9cf83ce', false],
  ['6.6.9', 'cebae1bdb9cf83cebc', true],
  ['6.6.10', 'cebae1bdb9cf83cebcce', false],
  ['6.6.11', 'cebae1bdb9cf83cebcceb5', true],
  ['6.7.2', 'c280', true],
  ['6.7.3', 'e0a080', true],
  ['6.7.4', 'f0908080', true],
  ['6.8.1', 'f888808080', false],
  ['6.8.2', 'fc8480808080', false],
  ['6.9.1', '7f', true],
  ['6.9.2', 'dfbf', true],
  ['6.9.3', 'efbfbf', true],
  ['6.9.4', 'f48fbfbf', true],
  ['6.10.1', 'f7bfbfbf', false],
  ['6.10.2', 'fbbfbfbfbf', false],
  ['6.10.3', 'fdbfbfbfbfbf', false],
  ['6.11.1', 'ed9fbf', true],
  ['6.11.2', 'ee8080', true],
  ['6.11.3', 'efbfbd', true],
  ['6.11.4', 'f48fbfbf', true],
  ['6.11.5', 'f4908080', false],
  ['6.12.1', '80', false],
  ['6.12.2', 'bf', false],
  ...['80bf', '80bf80', '80bf80bf', '80bf80bf80', '80bf80bf80bf'].map(
    (hex, index) => [`6.12.${index + 3}`, hex, false] as const,
  ),
  ['6.12.8', Buffer.from(Array.from({ length: 63 }, (_, n) => 0x80 + n)).toString('hex'), false],
  ['6.13.1', 'c020c120c220df20', false],
  ['6.13.2', 'e020e120ee20ef20', false],
  ['6.13.3', 'f020f120f620f720', false],
  ['6.13.4', 'f820f920fa20fb20', false],
  ['6.13.5', 'fc20fd20', false],
  ...['c0', 'e080', 'f08080', 'f8808080', 'fc80808080', 'df', 'efbf', 'f7bfbf', 'fbbfbfbf', 'fdbfbfbfbf'].map(
    (hex, index) => [`6.14.${index + 1}`, hex, false] as const,
  ),
  ['6.15.1', 'c0e080f08080f8808080fc80808080dfefbff7bfbffbbfbfbffdbfbfbfbf', false],
  ['6.16.1', 'fe', false],
  ['6.16.2', 'ff', false],
  ['6.16.3', 'fefeffff', false],
  ...['c0af', 'e080af', 'f08080af', 'f8808080af', 'fc80808080af'].map(
    (hex, index) => [`6.17.${index + 1}`, hex, false] as const,
  ),
  ...['c1bf', 'e09fbf', 'f08fbfbf', 'f887bfbfbf', 'fc83bfbfbfbf'].map(
    (hex, index) => [`6.18.${index + 1}`, hex, false] as const,
  ),
  ...['c080', 'e08080', 'f0808080', 'f880808080', 'fc8080808080'].map(
    (hex, index) => [`6.19.${index + 1}`, hex, false] as const,
  ),
  ...['eda080', 'edadbf', 'edae80', 'edafbf', 'edb080', 'edbe80', 'edbfbf'].map(
    (hex, index) => [`6.20.${index + 1}`, hex, false] as const,
  ),
  ...[
    'eda080edb080',
    'eda080edbfbf',
    'edadbfedb080',
    'edadbfedbfbf',
    'edae80edb080',
    'edae80edbfbf',
    'edafbfedb080',
    'edafbfedbfbf',
  ].map((hex, index) => [`6.21.${index + 1}`, hex, false] as const),
  ...['efbfbe', 'efbfbf', 'f09fbfbe', 'f09fbfbf', 'f0afbfbe', 'f0afbfbf', 'f0bfbfbe', 'f0bfbfbf', 'f18fbfbe'].map(
    (hex, index) => [`6.22.${index + 1}`, hex, true] as const,
  ),
  ['6.22.34', 'f48fbfbf', true],
  ['6.23.1', 'efbfbd', true],
];

const BROKEN = raw(Buffer.from('cebae1bdb9cf83cebcceb5f4908080656469746564', 'hex'));

const group6: AutobahnCase[] = [
  {
    id: '6.1.2',
    what: 'three fragments of nothing',
    frames: [text('', { fin: false }), more('', false), more('', true)],
    expect: ['!'],
  },
  {
    id: '6.1.3',
    what: 'fragments of nothing around a message',
    frames: [text('', { fin: false }), more(echo('within'), false), more('', true)],
    expect: ['within'],
  },
  { id: '6.2.1', what: 'UTF-8 in one frame', frames: [text(echo(GREEK))], expect: [GREEK] },
  { id: '6.2.2', what: 'UTF-8 in two fragments', frames: inPieces(Buffer.from(echo(GREEK)), 48), expect: [GREEK] },
  { id: '6.2.3', what: 'UTF-8 in fragments of a byte', frames: inPieces(Buffer.from(echo(GREEK)), 1), expect: [GREEK] },
  { id: '6.2.4', what: 'UTF-8, byte by byte', frames: [text(echo(GREEK))], chop: 1, expect: [GREEK] },
  { id: '6.3.2', what: 'broken UTF-8 in fragments of a byte', frames: inPieces(BROKEN, 1), expect: [], close: 1007 },
  {
    id: '6.4.1',
    what: 'broken UTF-8 in a fragment between others',
    frames: inPieces(BROKEN, 40),
    expect: [],
    close: 1007,
  },
  { id: '6.4.3', what: 'broken UTF-8, byte by byte', frames: [text(BROKEN)], chop: 1, expect: [], close: 1007 },
  ...UTF8.map(([id, hex, valid]) => ({
    id,
    what: `${valid ? '' : 'not '}UTF-8: ${hex.slice(0, 40)}`,
    frames: [text(raw(Buffer.from(hex, 'hex')))],
    ...(valid ? { expect: [Buffer.from(hex, 'hex').toString()] } : { expect: [], close: 1007 }),
  })),
];

const VALID_CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999];
const INVALID_CODES = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999];

const group7: AutobahnCase[] = [
  {
    id: '7.1.1',
    what: 'a message, then a close',
    frames: [text(echo('last')), close(closePayload(1000))],
    expect: ['last'],
    close: 1000,
  },
  ...[
    { what: 'two closes', behind: close(closePayload(1000)) },
    { what: 'a ping behind a close', behind: ping('late') },
    { what: 'a message behind a close', behind: text(echo('late')) },
  ].map(({ what, behind }, index) => ({
    id: `7.1.${index + 2}`,
    what,
    frames: [close(closePayload(1000)), behind],
    expect: [],
    close: 1000,
  })),
  {
    id: '7.1.5',
    what: 'a close between two fragments',
    frames: [text(half, { fin: false }), close(closePayload(1000)), more(otherHalf, true)],
    expect: [],
    close: 1000,
  },
  {
    id: '7.1.6',
    what: 'a long message, a short one, a close',
    frames: [text(echo('long', LIMIT)), text(echo('short')), close(closePayload(1000)), ping('late')],
    expect: ['long', 'short'],
    close: 1000,
  },
  { id: '7.3.1', what: 'a close without payload', frames: [close()], expect: [], close: null },
  { id: '7.3.2', what: 'a close with a payload of one byte', frames: [close('a')], expect: [], close: 1002 },
  {
    id: '7.3.3',
    what: 'a close with a code',
    frames: [close(closePayload(1000))],
    expect: [],
    close: 1000,
  },
  {
    id: '7.3.4',
    what: 'a close with a code and a reason',
    frames: [close(closePayload(1000, 'Hello World!'))],
    expect: [],
    close: 1000,
  },
  {
    id: '7.3.5',
    what: 'a close with the longest reason',
    frames: [close(closePayload(1000, '*'.repeat(123)))],
    expect: [],
    close: 1000,
  },
  {
    id: '7.3.6',
    what: 'a close with a reason that is too long',
    frames: [close(closePayload(1000, '*'.repeat(124)))],
    expect: [],
    close: 1002,
  },
  {
    id: '7.5.1',
    what: 'a close with a reason that is not UTF-8',
    frames: [close(closePayload(1000, Buffer.from('cebae1bdb9cf83cebcceb5eda080656469746564', 'hex')))],
    expect: [],
    close: 1007,
  },
  ...VALID_CODES.map((code, index) => ({
    id: `7.7.${index + 1}`,
    what: `a close with code ${code}`,
    frames: [close(closePayload(code))],
    expect: [],
    close: code,
  })),
  ...INVALID_CODES.map((code, index) => ({
    id: `7.9.${index + 1}`,
    what: `a close with code ${code}, which there is not`,
    frames: [close(closePayload(code))],
    expect: [],
    close: 1002,
  })),
  ...[5000, 65_535].map((code, index) => ({
    id: `7.13.${index + 1}`,
    what: `a close with code ${code}, out of range`,
    frames: [close(closePayload(code))],
    expect: [],
    close: 1002,
  })),
];

/** Group 9 goes up to 16 MiB; here as far as a message may be long, and the first that is too long. */
const group9: AutobahnCase[] = [
  { id: '9.1.1', what: 'a text of 64 KiB', frames: [text(echo('whole', LIMIT))], expect: ['whole'] },
  {
    id: '9.1.2',
    what: 'a text of 64 KiB and one byte',
    frames: [text(echo('whole', LIMIT + 1))],
    expect: [],
    close: 1009,
  },
  { id: '9.1.6', what: 'a text of 16 MiB', frames: [text(echo('whole', 2 ** 24))], expect: [], close: 1009 },
  ...[64, 256, 1_024, 4_096, 16_384, 65_536].map((size, index) => ({
    id: `9.3.${index + 1}`,
    what: `a text of 64 KiB in fragments of ${size}`,
    frames: inPieces(Buffer.from(echo('whole', LIMIT)), size),
    expect: ['whole'],
  })),
  {
    id: '9.3.9',
    what: 'a text of 64 KiB and one byte in fragments',
    frames: inPieces(Buffer.from(echo('whole', LIMIT + 1)), 1_024),
    expect: [],
    close: 1009,
  },
  ...[64, 128, 256, 512, 1_024, 2_048].map((chop, index) => ({
    id: `9.5.${index + 1}`,
    what: `a text of 64 KiB in chops of ${chop}`,
    frames: [text(echo('whole', LIMIT))],
    chop,
    expect: ['whole'],
  })),
  ...[16, 64, 256, 1_024, 4_096].map((size, index) => ({
    id: `9.7.${index + 2}`,
    what: `a hundred texts of ${size} bytes`,
    frames: Array.from({ length: 100 }, (_, n) => text(size === 16 ? echo(`${n}`) : echo(`${n}`, size))),
    expect: Array.from({ length: 100 }, (_, n) => `${n}`),
  })),
];

export const AUTOBAHN_CASES: readonly AutobahnCase[] = [
  ...group1,
  ...group2,
  ...group3,
  ...group4,
  ...group5,
  ...group6,
  ...group7,
  ...group9,
];

export const bytesOf = (frames: readonly FrameToSend[]): Buffer => Buffer.concat(frames.map(frameBytes));
