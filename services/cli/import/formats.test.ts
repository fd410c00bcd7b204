import { describe, expect, it, vi } from 'vitest';

import { BadInput, parseSourceJson, sourceTime, textItems } from './import.model.ts';
import { parseOpenai } from './openai.format.ts';
import { parseParley } from './parley.format.ts';
import { parseSharegpt } from './sharegpt.format.ts';

const place = { file: 'talks.jsonl', line: 7 };
const openai = (...messages: object[]) => parseOpenai(JSON.stringify({ messages }), place);
const sharegpt = (...conversations: object[]) => parseSharegpt(JSON.stringify({ conversations }), place);
const shape = ({ messages }: ReturnType<typeof parseOpenai>) =>
  messages.map(({ key, parentKey, body }) => [key, parentKey, body.content_role]);

describe('OpenAI-style lines', () => {
  it('put the work of the assistant below the question, and a result below its call', () => {
    const parsed = openai(
      { role: 'user', content: 'How warm is it?' },
      {
        role: 'assistant',
        content: 'Let me see.',
        tool_calls: [{ id: 'c1', function: { name: 'weather', arguments: '{"at":"Kiel"}' } }],
      },
      { role: 'tool', tool_call_id: 'c1', content: '{"celsius": 21}' },
      { role: 'assistant', content: '21 degrees.' },
    );
    expect(shape(parsed)).toEqual([
      ['message 0', null, 'user_message'],
      ['message 1', 'message 0', 'agent_response'],
      ['message 2', 'message 0', 'tool_call'],
      ['message 3', 'message 2', 'tool_call_result'],
      ['message 4', 'message 0', 'agent_response'],
    ]);
    expect(parsed.messages[3]?.body.content).toEqual([
      { type: 'tool_call_result', tool_name: 'weather', tool_result: { celsius: 21 }, tool_call_id: 'c1' },
    ]);
    expect(parsed.channel.body).toMatchObject({ name: 'How warm is it?', meta_data: { source_line: 7 } });
  });

  it('keep arguments that are not JSON as text', () => {
    const parsed = openai({
      role: 'assistant',
      tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{"a":' } }],
    });
    expect(parsed.messages[0]?.body.content).toMatchObject([{ tool_args: { arguments: '{"a":' } }]);
  });

  it('write images out as text, and inline ones by their size', () => {
    const parsed = openai({
      role: 'user',
      content: [
        { type: 'text', text: 'this' },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
      ],
    });
    expect(parsed.messages[0]?.body.content).toEqual([
      { type: 'text', text: 'this' },
      { type: 'text', text: '[image] https://example.com/a.png' },
      { type: 'text', text: '[image/png, 26 characters, inline]' },
    ]);
  });

  it('have another identity in another file, and the same in the same', () => {
    const line = JSON.stringify({ messages: [{ role: 'user', content: 'hi' }] });
    const key = parseOpenai(line, place).channel.key;
    expect(parseOpenai(line, place).channel.key).toBe(key);
    expect(parseOpenai(line, { ...place, line: 8 }).channel.key).not.toBe(key);
    expect(parseOpenai(line.replace('hi', 'ho'), place).channel.key).not.toBe(key);
  });

  it.each([
    ['no JSON', '{"messages": [', 'not JSON'],
    ['a list', '[]', 'not a JSON object'],
    ['no messages', '{}', 'no list of messages'],
    ['an empty list', '{"messages": []}', 'no messages'],
    ['a message of the wrong type', '{"messages": [null]}', 'message 1: it: '],
    ['an unknown role', '{"messages": [{"role": "ghost", "content": "x"}]}', 'message 1: role: '],
    ['content of another type', '{"messages": [{"role": "user", "content": 5}]}', 'message 1: content: '],
    [
      'a call without a name',
      '{"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]}',
      'message 1: tool_calls.0',
    ],
    [
      'an assistant without content or calls',
      '{"messages": [{"role": "assistant", "content": null}]}',
      'message 1: neither',
    ],
    ['half a character', '{"messages": [{"role": "user", "content": "\\ud800"}]}', 'message 1: content.0.text: '],
    [
      'too much text',
      JSON.stringify({ messages: [{ role: 'user', content: 'x'.repeat(600_000) }] }),
      'message 1: a message of more',
    ],
  ])('refuse %s', (_, line, reason) => {
    const parse = () => parseOpenai(line, place);
    expect(parse).toThrow(BadInput);
    expect(parse).toThrow(reason);
  });
});

describe('ShareGPT-style lines', () => {
  it('read calls of functions and their results', () => {
    const parsed = sharegpt(
      { from: 'human', value: 'Add 1 and 2' },
      { from: 'function_call', value: '{"name": "add", "arguments": {"a": 1, "b": 2}}' },
      { from: 'observation', value: '3' },
      { from: 'gpt', value: 'It is 3.' },
    );
    expect(shape(parsed)).toEqual([
      ['message 0', null, 'user_message'],
      ['message 1', 'message 0', 'tool_call'],
      ['message 2', 'message 1', 'tool_call_result'],
      ['message 3', 'message 0', 'agent_response'],
    ]);
    expect(parsed.messages[1]?.body.content).toMatchObject([{ tool_name: 'add', tool_args: { a: 1, b: 2 } }]);
    expect(parsed.messages[2]?.body.content).toMatchObject([{ tool_name: 'add', tool_result: { output: '3' } }]);
  });

  it('read their id, instructions and tools', () => {
    const source = {
      id: 'abc',
      system: 'Be kind.',
      tools: '[{"name":"add"}]',
      conversations: [{ from: 'user', value: 'hi' }],
    };
    const { channel, messages } = parseSharegpt(JSON.stringify(source), place);
    expect(channel.body.meta_data).toMatchObject({ source_id: 'abc', tools: [{ name: 'add' }] });
    expect(messages.map(({ body }) => body.content_role)).toEqual(['channel_notification', 'user_message']);
  });

  it.each([
    ['no conversations', '{"messages": []}', 'no list of conversations'],
    ['nobody', '{"conversations": [{"value": "x"}]}', 'message 1: not {'],
    ['nothing said', '{"conversations": [{"from": "gpt"}]}', 'message 1: not {'],
    [
      'an unknown speaker',
      '{"conversations": [{"from": "constructor", "value": "x"}]}',
      'message 1: from "constructor"',
    ],
    [
      'a call that is not JSON',
      '{"conversations": [{"from": "function_call", "value": "add"}]}',
      'message 1: the call',
    ],
    ['a call without a name', '{"conversations": [{"from": "function_call", "value": "{}"}]}', 'message 1: the call'],
  ])('refuse %s', (_, line, reason) => {
    const parse = () => parseSharegpt(line, place);
    expect(parse).toThrow(BadInput);
    expect(parse).toThrow(reason);
  });
});

describe('exported lines', () => {
  const interaction = {
    channel_id: 'c',
    span_id: 's',
    parent_span_id: 'p',
    interaction_id: 't',
    created_at: '2026-03-02T08:00:00.000Z',
    content_role: 'user_message',
    content: [{ type: 'text', text: 'hi' }],
    participant: { type: 'system' },
    complete: true,
    metadata: null,
  };
  it('keep spans and turns, and record the original time', () => {
    expect(parseParley(JSON.stringify(interaction), place)).toMatchObject({
      kind: 'interaction',
      message: {
        key: 's',
        parentKey: 'p',
        body: { interaction_id: 't', metadata: { source_time: '2026-03-02T08:00:00.000Z' } },
      },
    });
  });

  it('keep metadata that has no room for the time of the source', () => {
    const metadata = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`name-${n}`, n]));
    const interaction = { channel_id: 'c', span_id: 's', content_role: 'user_message', content: [], metadata };
    const parsed = parseParley(JSON.stringify({ ...interaction, created_at: '2026-03-02T10:00:00.000Z' }), place);
    expect(parsed).toMatchObject({ message: { body: { metadata } } });
  });

  it('keep the time that an earlier import has recorded', () => {
    const line = JSON.stringify({ ...interaction, metadata: { source_time: '2020-01-01T00:00:00.000Z' } });
    expect(parseParley(line, place)).toMatchObject({
      message: { body: { metadata: { source_time: '2020-01-01T00:00:00.000Z' } } },
    });
  });

  it.each([
    ['something else', '{"id": "x"}', 'neither a channel'],
    ['an interaction without a span', JSON.stringify({ ...interaction, span_id: null }), 'no channel_id or span_id'],
    ['content that the API refuses', JSON.stringify({ ...interaction, content: [{ type: 'smell' }] }), 'content.0'],
    ['what is never kept', JSON.stringify({ ...interaction, content_role: 'tool_call_update' }), 'tool-call updates'],
    ['a channel without a name', '{"id": "x", "channel_type": "chat"}', 'channel: name'],
    [
      'a number that would become another one',
      JSON.stringify({ ...interaction, metadata: { a: [0] } }).replace('[0]', '[0,9007199254740993]'),
      'metadata.a.1: Value error, the number cannot be represented exactly',
    ],
    [
      'a zero that would lose its sign',
      '{"id": "x", "channel_type": "chat", "meta_data": -0}',
      'meta_data: Value error',
    ],
  ])('refuse %s', (_, line, reason) => {
    const parse = () => parseParley(line, place);
    expect(parse).toThrow(BadInput);
    expect(parse).toThrow(reason);
  });
});

describe('all formats', () => {
  it('split long text between characters', () => {
    const items = textItems(`${'x'.repeat(131_071)}🙂y`);
    expect(items.map(({ text }) => text.length)).toEqual([131_071, 3]);
    expect(items.every(({ text }) => text.isWellFormed())).toBe(true);
  });

  it.each([
    ['1772445600.000100', '2026-03-02T10:00:00.000Z'],
    [1_772_445_600_000, '2026-03-02T10:00:00.000Z'],
    ['2026-03-02T11:00:00+01:00', '2026-03-02T10:00:00.000Z'],
    ['2026-03-02 11:00:00.123456+0100', '2026-03-02T10:00:00.123Z'],
    ['Mon, 02 Mar 2026 11:00:00 +0100', '2026-03-02T10:00:00.000Z'],
    ['Mon Mar 02 2026', null],
    ['part 5', null],
    ['2026-03-32T10:00:00Z', null],
    ['yesterday', null],
    [Number.MAX_VALUE, null],
    [null, null],
  ])('read %s as %s', (value, time) => {
    expect(sourceTime(value)).toBe(time);
  });

  it.each(['Pacific/Auckland', 'America/Los_Angeles'])('read times without a zone as UTC, also in %s', (zone) => {
    vi.stubEnv('TZ', zone);
    expect(new Date(Date.UTC(2026, 2, 2, 10)).getHours()).not.toBe(10);
    for (const text of ['2026-03-02T10:00:00', '2026-03-02 10:00:00', '2026-03-02T10:00']) {
      expect(sourceTime(text)).toBe('2026-03-02T10:00:00.000Z');
    }
    expect(sourceTime('2026-03-02')).toBe('2026-03-02T00:00:00.000Z');
    vi.unstubAllEnvs();
  });

  it('keep a tool result as text when it has more values than a map may have', () => {
    const rows = { rows: Array.from({ length: 1_200 }, (_, n) => n) };
    for (const content of [JSON.stringify(rows), [{ type: 'text', text: JSON.stringify(rows) }]]) {
      const parsed = openai({ role: 'tool', tool_call_id: 'c', content });
      expect(parsed.messages[0]?.body.content).toMatchObject([{ tool_result: { output: JSON.stringify(rows) } }]);
    }
  });

  it('keep values as text when a number would change', () => {
    const args = '{"id":12345678901234567890,"zero":[-0]}';
    const call = (given: string) =>
      `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":${given}}}]}]}`;
    for (const given of [args, JSON.stringify(args)]) {
      const [message] = parseOpenai(call(given), place).messages;
      expect(message?.body.content).toMatchObject([{ tool_args: { arguments: args } }]);
    }
    const called = sharegpt({ from: 'function_call', value: `{"name":"f","arguments":${args}}` });
    expect(called.messages[0]?.body.content).toMatchObject([{ tool_args: { arguments: args } }]);
    const [large] = parseOpenai(call('12345678901234567890'), place).messages;
    expect(large?.body.content).toMatchObject([{ tool_args: { arguments: '12345678901234567890' } }]);
    const messages = '[{"role":"user","content":"hi","timestamp":1767225600.00000000001}]';
    const line = `{"id":9007199254740993,"tools":[{"max":1e400}],"logprob":-0.0,"messages":${messages}}`;
    const { channel, messages: said } = parseOpenai(line, place);
    expect(channel.body.meta_data).toMatchObject({ source_id: '9007199254740993', tools: '[{"max":1e400}]' });
    expect(said[0]?.body.metadata).toEqual({ source_time: '2026-01-01T00:00:00.000Z' });
  });

  it('keep the tools of a conversation as text, or leave them out, where a channel cannot hold them', () => {
    const tools = Array.from({ length: 400 }, (_, n) => ({ name: `tool-${n}`, parameters: {} }));
    const messages = [{ role: 'user', content: 'hi' }];
    const metaOf = (source: object) => parseOpenai(JSON.stringify(source), place).channel.body.meta_data;
    expect(metaOf({ messages, tools })).toMatchObject({ tools: JSON.stringify(tools) });
    const large = [{ name: 'large', description: 'x'.repeat(70_000) }];
    expect(metaOf({ messages, tools: large })).toMatchObject({ source_line: 7, tools_left_out: true });
    expect(metaOf({ messages, tools: large })).not.toHaveProperty('tools');
  });
});

it('parses JSON, whatever its texts contain', () => {
  const value = { text: `${'['.repeat(200)}",\\"{`, list: [1, [2, { three: null }]] };
  expect(parseSourceJson(JSON.stringify(value))).toEqual(value);
});

it.each([
  ['malformed JSON', '{', 'not JSON'],
  ['nesting beyond 100 levels', '['.repeat(101), 'nested deeper than 100 levels'],
  ['mixed nesting beyond 100 levels', '[{"a":'.repeat(51), 'nested deeper than 100 levels'],
  ['too many values', `[${'0,'.repeat(8_000_000)}0]`, 'more than 8 million values'],
  ['too many empty lists', `[${'[],'.repeat(4_000_000)}0]`, 'more than 8 million values'],
])('refuses %s', (_, text, reason) => {
  expect(() => parseSourceJson(text)).toThrow(reason);
});

it('parses 100 levels', () => {
  expect(parseSourceJson('['.repeat(100) + ']'.repeat(100))).toHaveLength(1);
});
