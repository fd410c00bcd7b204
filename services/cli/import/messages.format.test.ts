import { describe, expect, it } from 'vitest';

import { BadInput } from './import.model.ts';
import { parseMessages } from './messages.format.ts';

const place = { file: 'talks.jsonl', line: 7 };
const parseOpenai = parseMessages.bind(null, 'openai');
const parseSharegpt = parseMessages.bind(null, 'sharegpt');
const openai = (...messages: object[]) => parseOpenai(JSON.stringify({ messages }), place);
const sharegpt = (...conversations: object[]) => parseSharegpt(JSON.stringify({ conversations }), place);
const shape = ({ messages }: ReturnType<typeof parseOpenai>) =>
  messages.map(({ key, parentKey, body }) => [key, parentKey, body.content_role]);

describe('a conversation', () => {
  it('names the senders that a channel has no room for, as a problem of its line', () => {
    const messages = Array.from({ length: 1_002 }, (_, n) => ({ role: 'user', name: `guest ${n}`, content: 'hi' }));
    const { channel, bad, leftOut } = openai(...messages);
    expect(channel.body.participants).toHaveLength(1_000);
    expect(bad).toEqual([
      {
        ...place,
        reason: '2 of 1002 participants are left out, because a channel has at most 1000: guest 1000, guest 1001',
      },
    ]);
    expect(leftOut).toEqual(['participants', 'participants']);
  });
});

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
    expect(parsed.messages[3]?.body.content).toMatchObject([
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

  it('write images out as text, and inline ones as their JSON', () => {
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
      { type: 'text', text: '{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}' },
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

  it('keep the rest of a text that holds half a character', () => {
    const { messages, bad } = parseOpenai(
      '{"messages": [{"role": "user", "content": "a\\ud83d\\u0000\\u202eb"}]}',
      place,
    );
    expect(messages[0]?.body.content).toMatchObject([{ type: 'text', text: 'a\ufffd\0\u202eb' }]);
    expect(bad).toEqual([]);
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
    ['nobody', '{"conversations": [{"value": "x"}]}', 'message 1: role: '],
    ['nothing said', '{"conversations": [{"from": "gpt"}]}', 'message 1: neither'],
    [
      'an unknown speaker',
      '{"conversations": [{"from": "constructor", "value": "x"}]}',
      'message 1: role: "constructor"',
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

describe('the content of a message', () => {
  const texts = (...content: unknown[]) =>
    openai({ role: 'assistant', content }).messages.flatMap(({ body }) =>
      body.content.map((item) => [body.content_role, item.type === 'text' ? item.text : item]),
    );

  it.each<[what: string, part: unknown, role: string, text: string]>([
    ["a member that is not OpenAI's", { type: 'text', value: 'hello' }, 'agent_response', 'hello'],
    ["an assistant's text", { type: 'text', text: { value: 'hi', annotations: [] } }, 'agent_response', 'hi'],
    [
      'a text with notes',
      { type: 'text', text: { value: 'hi', annotations: [1] } },
      'agent_response',
      '{"type":"text"',
    ],
    ['a text of the responses', { type: 'output_text', text: 'hi', annotations: [] }, 'agent_response', 'hi'],
    ['a refusal', { type: 'refusal', refusal: 'no' }, 'agent_response', 'no'],
    ['a thought', { type: 'thinking', thinking: 'hm', signature: 'x' }, 'agent_reasoning', 'hm'],
    ['a summary', { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] }, 'agent_reasoning', 'hm'],
    [
      'a thought that is sealed',
      { type: 'redacted_thinking', data: 'x' },
      'agent_response',
      '{"type":"redacted_thinking"',
    ],
    ['a sound', { type: 'input_audio', input_audio: { data: 'AA' } }, 'agent_response', '{"type":"input_audio"'],
    ['a document', { type: 'document', source: { data: 'AA' } }, 'agent_response', '{"type":"document","source"'],
    ['a file', { type: 'file', mediaType: 'a/b', url: 'https://x.example' }, 'agent_response', '{"type":"file"'],
    ['a number', 5, 'agent_response', '5'],
    ['a call without a name', { type: 'tool_use', id: 'c' }, 'agent_response', '{"type":"tool_use","id":"c"}'],
  ])('is kept where it has %s', (_, part, role, text) => {
    const [[kind, kept] = [], ...others] = texts(part);
    expect([kind, String(kept).slice(0, text.length), ...others]).toEqual([role, text]);
  });

  it("becomes calls and results where it has Anthropic's, without a turn for the results", () => {
    const parsed = openai(
      { role: 'user', content: [{ type: 'text', text: 'How warm?', cache_control: { type: 'ephemeral' } }] },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me see' },
          { type: 'tool_use', id: 'c', name: 'w', input: { at: 'Kiel' } },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: '{"c":21}' }] }],
      },
      { role: 'assistant', content: '21.' },
    );
    expect(shape(parsed)).toEqual([
      ['message 0', null, 'user_message'],
      ['message 1', 'message 0', 'agent_response'],
      ['message 2', 'message 0', 'tool_call'],
      ['message 3', 'message 2', 'tool_call_result'],
      ['message 4', 'message 0', 'agent_response'],
    ]);
    expect(parsed.messages[3]?.body.content).toMatchObject([{ tool_name: 'w', tool_result: { c: 21 } }]);
    expect(parsed.messages[0]?.body.metadata).toEqual({
      source_fields: { parts_of_content: [{ part: 1, cache_control: { type: 'ephemeral' } }] },
    });
  });

  it("becomes calls and results where it has the AI SDK's", () => {
    const parsed = openai(
      { role: 'user', parts: [{ type: 'text', text: 'How warm?' }], content: 'How warm?' },
      {
        role: 'assistant',
        parts: [
          { type: 'step-start' },
          {
            type: 'tool-weather',
            toolCallId: 'c',
            state: 'output-available',
            input: { at: 'Kiel' },
            output: { c: 21 },
          },
          { type: 'dynamic-tool', toolName: 'x', toolCallId: 'd', state: 'output-error', input: {}, errorText: 'away' },
          { type: 'text', text: '21.' },
        ],
      },
      { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'e', toolName: 'y', input: {} }] },
      {
        role: 'tool',
        content: [{ type: 'tool-result', toolCallId: 'e', toolName: 'y', output: { type: 'json', value: { a: 1 } } }],
      },
    );
    expect(shape(parsed)).toEqual([
      ['message 0', null, 'user_message'],
      ['message 1', 'message 0', 'tool_call'],
      ['message 2', 'message 1', 'tool_call_result'],
      ['message 3', 'message 0', 'tool_call'],
      ['message 4', 'message 3', 'tool_call_result'],
      ['message 5', 'message 0', 'agent_response'],
      ['message 6', 'message 0', 'tool_call'],
      ['message 7', 'message 6', 'tool_call_result'],
    ]);
    expect([2, 4, 7].map((at) => parsed.messages[at]?.body.content[0])).toMatchObject([
      { tool_result: { c: 21 } },
      { tool_result: { error: 'away' } },
      { tool_result: { a: 1 } },
    ]);
    expect(parsed.messages[0]?.body.metadata).toBeNull();
  });

  it('of a part that is too large is left out and named; the rest of the message is kept', () => {
    const part = { type: 'input_audio', input_audio: { data: 'x'.repeat(200_000) } };
    const parsed = openai({ role: 'user', content: [{ type: 'text', text: 'listen' }, part] });
    expect(parsed.messages).toMatchObject([{ body: { content: [{ text: 'listen' }] } }]);
    expect(parsed.bad).toEqual([
      { ...place, reason: 'message 1: a part of type input_audio of 200048 characters is left out' },
    ]);
  });

  it('is kept with the other members of the message and of the line, or their names are', () => {
    const line = { dataset: 'd', messages: [{ role: 'user', content: 'hi', weight: 0, huge: 'x'.repeat(70_000) }] };
    const { channel, messages, leftOut } = parseOpenai(JSON.stringify(line), place);
    expect(channel.body.meta_data).toMatchObject({ source_fields: { dataset: 'd' } });
    expect(messages[0]?.body.metadata).toEqual({ source_fields: { weight: 0 } });
    expect(leftOut).toEqual(['huge']);
  });

  it('is reported where it cannot be imported; the other messages are', () => {
    const parsed = openai(
      { role: 'user', content: 'a' },
      { role: 'ghost', content: 'b' },
      { role: 'user', content: 'c' },
    );
    expect(parsed.messages).toHaveLength(2);
    expect(parsed.bad).toEqual([{ ...place, reason: 'message 2: role: "ghost" is not known' }]);
  });
});

describe('all formats', () => {
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
