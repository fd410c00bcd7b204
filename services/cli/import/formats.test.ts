import { describe, expect, it, vi } from 'vitest';

import { BadInput, parseSourceJson, sourceTime, textItems } from './import.model.ts';
import { parseChatgpt } from './chatgpt.format.ts';
import { parseMessages } from './messages.format.ts';
import { parseParley } from './parley.format.ts';
import { readValues } from './source-values.ts';

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
    expect(texts(part)).toEqual([[role, expect.stringMatching(new RegExp(`^${RegExp.escape(text)}`))]]);
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

describe("ChatGPT's conversations", () => {
  const said = (role: string, text: string, more: object = {}) => ({
    author: { role, name: null },
    content: { content_type: 'text', parts: [text] },
    create_time: 1_772_445_600,
    recipient: 'all',
    ...more,
  });
  const mapping = {
    root: { id: 'root', parent: null, children: ['s'], message: null },
    s: { parent: 'root', children: ['q'], message: said('system', '') },
    q: { parent: 's', children: ['new', 'old'], message: said('user', 'How warm?') },
    old: { parent: 'q', children: ['thanks'], message: said('assistant', 'Cold.') },
    thanks: { parent: 'old', children: [], message: said('user', 'Thanks') },
    new: {
      parent: 'q',
      children: ['result'],
      message: said('assistant', '', {
        recipient: 'python',
        content: { content_type: 'code', language: 'unknown', text: 'warm()' },
      }),
    },
    result: {
      parent: 'new',
      children: ['answer'],
      message: said('tool', '', {
        author: { role: 'tool', name: 'python' },
        content: { content_type: 'execution_output', text: '21' },
      }),
    },
    answer: {
      parent: 'result',
      children: [],
      message: said('assistant', '21.', { weight: 1, metadata: { model_slug: 'm' } }),
    },
  };
  const parse = (current: string) =>
    parseChatgpt(
      JSON.stringify({ title: 'Weather', create_time: 1_772_445_600, mapping, current_node: current }),
      place,
    );

  it('keep every branch, the shown one last', () => {
    const { channel, messages, bad } = parse('answer');
    expect(bad).toEqual([]);
    expect(channel.body).toMatchObject({ name: 'Weather', meta_data: { source_format: 'chatgpt' } });
    const parents = new Map(messages.map(({ key, body }) => [key, body.metadata?.['source_id']]));
    expect(
      messages.map(({ parentKey, body }) => [
        body.metadata?.['source_id'],
        parents.get(parentKey ?? ''),
        body.content_role,
        body.metadata?.['source_branch'],
      ]),
    ).toEqual([
      ['q', undefined, 'user_message', undefined],
      ['old', 'q', 'agent_response', 'other'],
      ['thanks', undefined, 'user_message', 'other'],
      ['new', 'q', 'tool_call', undefined],
      ['result', 'new', 'tool_call_result', undefined],
      ['answer', 'q', 'agent_response', undefined],
    ]);
    expect(messages.map(({ body }) => body.metadata?.['source_parent_id'])).toEqual([
      undefined,
      'q',
      'old',
      'q',
      'new',
      'result',
    ]);
    expect(messages[5]?.body.metadata).toMatchObject({
      source_time: '2026-03-02T10:00:00.000Z',
      source_fields: { weight: 1, metadata: { model_slug: 'm' } },
    });
  });

  it('keep edited questions beside each other, each in a turn of its own', () => {
    const edited = {
      ...mapping,
      old: { ...mapping.old, children: ['thanks', 'sure'] },
      sure: { parent: 'old', children: ['yes'], message: said('user', 'Sure?') },
      yes: { parent: 'sure', children: [], message: said('assistant', 'Yes.') },
    };
    const { messages } = parseChatgpt(JSON.stringify({ id: 'c', mapping: edited, current_node: 'yes' }), place);
    const found = messages.map(({ key, parentKey, startsTurn = false }) => [key, parentKey, startsTurn]);
    expect(found.slice(-4)).toEqual([
      ['old 0', 'q 0', false],
      ['thanks 0', 'old 0', true],
      ['sure 0', 'old 0', true],
      ['yes 0', 'sure 0', false],
    ]);
  });

  it('keep edited questions of any number, as roots where the API accepts no deeper ones', () => {
    const count = 200;
    const deep = Object.fromEntries(
      Array.from({ length: count }, (_, n) => [
        [`q${n}`, { parent: n ? `a${n - 1}` : null, children: [`a${n}`], message: said('user', 'q') }],
        [`e${n}`, { parent: n ? `a${n - 1}` : null, children: [], message: said('user', 'e') }],
        [`a${n}`, { parent: `q${n}`, children: [`q${n + 1}`, `e${n + 1}`], message: said('assistant', 'a') }],
      ]).flat(),
    );
    const { messages } = parseChatgpt(JSON.stringify({ id: 'c', mapping: deep }), place);
    expect(messages).toHaveLength(3 * count);
    const depths = new Map<string | null, number>([[null, 0]]);
    for (const { key, parentKey } of messages) depths.set(key, (depths.get(parentKey) ?? NaN) + 1);
    expect(Math.max(...depths.values())).toBeLessThanOrEqual(64);
  });

  it('have the same keys in a later export, where ids identify them', () => {
    const first = parseChatgpt(JSON.stringify({ id: 'c', title: 'a', mapping, current_node: 'answer' }), place);
    const more = {
      ...mapping,
      answer: { ...mapping.answer, children: ['next'] },
      next: { parent: 'answer', children: [], message: said('user', 'And now?') },
    };
    const later = parseChatgpt(
      JSON.stringify({ conversation_id: 'c', title: 'b', mapping: more, current_node: 'next' }),
      { file: 'conversations-003.json', line: 1, item: 9 },
    );
    expect(later.channel.key).toBe(first.channel.key);
    const keys = first.messages.map(({ key }) => key);
    expect(later.messages.map(({ key }) => key)).toEqual([...keys, 'next 0']);
  });

  it('end with the branch that was shown last', () => {
    expect(parse('thanks').messages.at(-1)?.body.metadata).toMatchObject({ source_id: 'thanks' });
  });

  it('are read where nodes are missing, or form a circle', () => {
    const odd = { ...mapping, q: { ...mapping.q, children: ['new', 'gone', 'q'] } };
    const line = JSON.stringify({ mapping: odd, current_node: 'gone' });
    const { messages, bad } = parseChatgpt(line, place);
    expect(messages).toHaveLength(6);
    expect(bad).toEqual([]);
  });

  it('are read where only parents, only children, or neither of them connect the messages', () => {
    const shapes = [
      (node: object) => ({ ...node, children: [] }),
      (node: object) => ({ ...node, parent: null }),
      (node: object) => ({ ...node, parent: null, children: [] }),
      (node: object) => ({ ...node, parent: 'q', children: ['q'] }),
    ];
    for (const shape of shapes) {
      const odd = Object.fromEntries(Object.entries(mapping).map(([id, node]) => [id, shape(node)]));
      const { messages, bad } = parseChatgpt(JSON.stringify({ mapping: odd, current_node: 'answer' }), place);
      const ids = messages.map(({ body }) => String(body.metadata?.['source_id']));
      expect(ids.sort()).toEqual(['answer', 'new', 'old', 'q', 'result', 'thanks']);
      expect(bad).toEqual([]);
    }
  });

  it.each(['{}', '{"mapping": {}}', '{"mapping": {"a": 5}}'])('are refused where they are %s', (line) => {
    expect(() => parseChatgpt(line, place)).toThrow(BadInput);
  });
});

describe('files of values', () => {
  const read = async (text: string, size = 7) => {
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, n) =>
      bytes.subarray(n * size, (n + 1) * size),
    );
    const values = await Array.fromAsync(
      readValues(
        (async function* () {
          yield* chunks;
        })(),
      ),
    );
    return values.map(({ line, item, text: value, problem }) => [line, item, value ?? problem]);
  };
  const values = [{ a: '],[{é"\\' }, { b: [1, { c: [] }] }];
  const compact = values.map((value) => JSON.stringify(value));

  it.each([1, 3, 1_000])('are lines, arrays or pretty-printed values, in chunks of %i bytes', async (size) => {
    expect(await read(`\uFEFF${compact.join('\n')}`, size)).toEqual([
      [1, undefined, compact[0]],
      [2, undefined, compact[1]],
    ]);
    expect(await read(` [${compact.join(',')} ]\n`, size)).toEqual([
      [1, 1, compact[0]],
      [1, 2, compact[1]],
    ]);
    const array = await read(JSON.stringify(values, null, 2), size);
    expect(array.map(([line, item, text]) => [line, item, JSON.parse(String(text))])).toEqual([
      [2, 1, values[0]],
      [5, 2, values[1]],
    ]);
    const pretty = await read(values.map((value) => JSON.stringify(value, null, 2)).join('\n'), size);
    expect(pretty.map(([line, item, text]) => [line, item, JSON.parse(String(text))])).toEqual([
      [1, undefined, values[0]],
      [4, undefined, values[1]],
    ]);
  });

  it('are named where they are damaged', async () => {
    expect(await read('[{"a":1},{"b"')).toEqual([
      [1, 1, '{"a":1}'],
      [1, 2, 'the file ends inside of this element'],
    ]);
    expect(await read('[{"a":1},')).toEqual([
      [1, 1, '{"a":1}'],
      [1, undefined, 'the file ends before its list'],
    ]);
    expect(await read('[{"a":1}]\n[2]')).toEqual([
      [1, 1, '{"a":1}'],
      [2, 2, 'text after the end of the list'],
    ]);
    expect(await read(`["${'x'.repeat(17_000_000)}",2]`, 1_000_000)).toEqual([
      [1, 1, 'longer than 16 MiB'],
      [1, 2, '2'],
    ]);
    expect(await read('[]')).toEqual([]);
    expect(await read('')).toEqual([]);
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
