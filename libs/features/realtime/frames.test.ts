import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { clientFrame, decodeClientFrame, encodeFrame, serverFrame, type ServerFrame } from './frames.ts';

const decode = (text: string) => decodeClientFrame(Buffer.from(text));

describe('frames of a client', () => {
  it.each([
    ['{"frame":"resume"}', { frame: 'resume' }],
    ['{"frame":"resume","after":0}', { frame: 'resume', after: 0 }],
    [
      '{"frame":"resume","after":9007199254740991,"include":["nested","incomplete","ephemeral"]}',
      { frame: 'resume', after: Number.MAX_SAFE_INTEGER, include: ['nested', 'incomplete', 'ephemeral'] },
    ],
    [
      '{"frame":"command","id":"1","type":"typing","data":{"a":[1]}}',
      { frame: 'command', id: '1', type: 'typing', data: { a: [1] } },
    ],
    ['{"frame":"command","id":"1","type":"typing"}', { frame: 'command', id: '1', type: 'typing' }],
    ['{"frame":"ping"}', { frame: 'ping' }],
    ['{"frame":"pong"}', { frame: 'pong' }],
  ])('reads %s', (text, frame) => {
    expect(decode(text)).toEqual({ ok: true, frame });
  });

  it.each([
    ['-1', 'greater_than_equal', 'Input should be greater than or equal to 0'],
    ['1.5', 'int_from_float', 'Input should be a valid integer, got a number with a fractional part'],
    ['"1e3"', 'int_parsing', 'Input should be a valid integer, unable to parse string as an integer'],
    ['null', 'int_type', 'Input should be a valid integer'],
    ['9223372036854776000', 'int_parsing_size', 'Unable to parse input string as an integer, exceeded maximum size'],
  ])('refuses to resume after %s', (after, type, msg) => {
    const refused = decode(`{"frame":"resume","after":${after}}`);
    expect(refused).toMatchObject({
      ok: false,
      code: 'invalid_resume',
      detail: [{ type, loc: ['frame', 'resume', 'after'], msg }],
    });
  });

  it('refuses an unknown member, and names it', () => {
    expect(decode('{"frame":"resume","afer":3}')).toEqual({
      ok: false,
      code: 'invalid_resume',
      detail: [
        { type: 'extra_forbidden', loc: ['frame', 'resume', 'afer'], msg: 'Extra inputs are not permitted', input: 3 },
      ],
    });
  });

  it('refuses an invalid resume', () => {
    expect(decode('{"frame":"resume","include":["everything"]}')).toMatchObject({
      code: 'invalid_resume',
      detail: [{ type: 'enum', ctx: { expected: "'ephemeral', 'nested' or 'incomplete'" } }],
    });
  });

  it('names the command that it refuses, as far as it can', () => {
    expect(decode('{"frame":"command","id":"c-1"}')).toEqual({
      ok: false,
      id: 'c-1',
      code: 'invalid_command',
      detail: [
        {
          type: 'missing',
          loc: ['frame', 'command', 'type'],
          msg: 'Field required',
          input: { frame: 'command', id: 'c-1' },
        },
      ],
    });
    const tooLong = decode(JSON.stringify({ frame: 'command', id: 'x'.repeat(256), type: 'typing' }));
    expect(tooLong).toMatchObject({ code: 'invalid_command', detail: [{ type: 'string_too_long' }] });
    expect(tooLong).not.toHaveProperty('id');
  });

  it('refuses frames of the server, and frames of an unknown or missing kind', () => {
    const expected_tags = "'resume', 'command', 'ping', 'pong'";
    for (const tag of ['hello', 'Resume', '']) {
      expect(decode(JSON.stringify({ frame: tag }))).toMatchObject({
        ok: false,
        code: 'invalid_frame',
        detail: [{ type: 'union_tag_invalid', loc: ['frame'], ctx: { tag, expected_tags } }],
      });
    }
    expect(decode('{}')).toMatchObject({ code: 'invalid_frame', detail: [{ type: 'union_tag_not_found' }] });
    expect(decode('[]')).toMatchObject({ ok: false, code: 'invalid_frame' });
    expect(decode('null')).toMatchObject({ ok: false, code: 'invalid_frame' });
  });

  it.each([
    ['', 'The frame is empty'],
    ['{"frame":', [{ type: 'json_invalid' }]],
    [`{"frame":"command","id":"1","type":"t","data":${'['.repeat(200)}`, [{ type: 'json_invalid' }]],
  ])('refuses the text %j', (text, detail) => {
    expect(decode(text)).toMatchObject({ ok: false, code: 'invalid_json', detail });
  });

  it.each([
    ['"data":{"__proto__":{}}', { type: 'extra_forbidden', loc: ['frame', 'data', '__proto__'] }],
    ['"data":{"n":[9007199254740993]}', { type: 'value_error', loc: ['frame', 'data', 'n', 0] }],
    ['"data":{"n":-0}', { type: 'value_error', loc: ['frame', 'data', 'n'] }],
    ['"data":1e400', { type: 'finite_number', loc: ['frame', 'data'] }],
  ])('refuses a command for a part of it, and names the command: %s', (member, error) => {
    const frame = `{"frame":"command","id":"1","type":"t",${member}}`;
    const refused = { ok: false, code: 'invalid_command', id: '1', detail: [error] };
    expect(decode(frame)).toMatchObject(refused);
    expect(decode(`\ufeff${frame}`)).toMatchObject(refused);
  });

  it('refuses to resume after a number that a double cannot hold', () => {
    expect(decode('{"frame":"resume","after":9223372036854775808}')).toMatchObject({
      ok: false,
      code: 'invalid_resume',
      detail: [{ type: 'value_error', loc: ['frame', 'after'] }],
    });
  });

  it('refuses bytes that are no UTF-8', () => {
    expect(decodeClientFrame(Buffer.from([0x7b, 0xff, 0x7d]))).toMatchObject({ ok: false, code: 'invalid_json' });
  });

  it('never throws, and limits the size of its refusals', () => {
    const texts = fc.oneof(
      fc.string(),
      fc.json(),
      fc.record({ frame: fc.constantFrom('resume', 'command', 'ping'), id: fc.anything() }).map((v) => text(v)),
    );
    fc.assert(
      fc.property(texts, (sent) => {
        const decoded = decode(sent);
        const refusal = decoded.ok ? '' : JSON.stringify(decoded);
        expect(refusal.length).toBeLessThan(16_384 + sent.length);
        expect(decoded.ok).toBe(clientFrame.safeParse(valueOf(sent)).success);
      }),
    );
    const many = decode(JSON.stringify({ frame: 'resume', include: Array.from({ length: 5_000 }, () => 'x') }));
    expect(JSON.stringify(many).length).toBeLessThan(16_384);
  });
});

function valueOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function text(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '';
  }
}

describe('frames of the server', () => {
  const frames: ServerFrame[] = [
    {
      frame: 'hello',
      protocol: 'parley.v1',
      session_id: 's',
      channel_id: 'c',
      principal: { type: 'user', id: 'u' },
      head: 0,
      heartbeat_ms: 25_000,
      max_frame_bytes: 65_536,
    },
    { frame: 'event', seq: 1, type: 'channel.created', at: '2026-01-31T12:00:00.000Z', actor: null, data: null },
    { frame: 'caught_up', seq: 0 },
    { frame: 'delta', interaction_id: 'i', offset: 0, text: 'a' },
    { frame: 'snapshot', interaction_id: 'i', text: '' },
    { frame: 'ephemeral', key: 'typing:u', n: 1, data: null, ttl_ms: 10_000 },
    { frame: 'ack', id: '1', seq: null },
    { frame: 'error', id: '1', code: 'not_found', detail: 'Not Found' },
    { frame: 'error', code: 'invalid', detail: [{ type: 'missing', loc: ['body', 0], msg: 'Field required' }] },
    { frame: 'ping' },
    { frame: 'pong' },
  ];

  it.each(frames)('$frame keeps to its schema and begins with its kind', (frame) => {
    const encoded = encodeFrame(frame);
    expect(encoded.startsWith(`{"frame":"${frame.frame}"`)).toBe(true);
    expect(serverFrame.parse(JSON.parse(encoded))).toEqual(frame);
  });

  it('writes the kind first, whatever came first', () => {
    expect(encodeFrame({ id: '1', seq: 7, frame: 'ack' })).toBe('{"frame":"ack","id":"1","seq":7}');
  });
});
