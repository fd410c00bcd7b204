/* What endpoints want to get: each is from a documented or reported endpoint. */
import { describe, expect, it } from 'vitest';

import { type ModelCall, type ModelMessage, type ModelPart } from '#libs/platform/model/index.ts';
import { type Answer, type ChatRequest, chunks, delta, says, streams } from '#test/support/model-server.ts';

import { call, callsOf, endOf, stop, textOf, useScriptedEndpoint } from './scripted-endpoint.ts';

const { model, partsOf, server } = useScriptedEndpoint();

/** A conversation of one round of tools, as the caller keeps it. */
function historyOf(parts: readonly ModelPart[]): ModelMessage[] {
  const calls = parts.flatMap((part) => (part.type === 'tool_call' ? [part.call] : []));
  // The caller has ids of its own.
  const toolCalls = calls.map((one, index) => ({ ...one, id: `call-1-${index + 1}` }));
  return [
    { role: 'user', text: 'Find me.' },
    { role: 'assistant', text: textOf(parts), toolCalls, sent: endOf(parts).sent },
    ...toolCalls.map(({ id, name }): ModelMessage => ({ role: 'tool', callId: id, name, result: `of ${id}` })),
  ];
}

async function repeated(answer: Answer, more: Partial<ModelCall> = {}): Promise<ChatRequest> {
  const one = model();
  const messages = historyOf(await partsOf(answer, {}, one));
  await partsOf(says({ text: ['So'] }), { messages, ...more }, one);
  return server().requests.at(-1)!.body;
}

describe('a message that is repeated', () => {
  it('has all that the endpoint sent, unchanged', async () => {
    const given = {
      reasoning_content: 'Hmm.',
      reasoning_details: [{ type: 'reasoning.text', text: 'Hmm.', signature: 'abc', index: 0 }],
      thinking_blocks: [
        { type: 'thinking', thinking: 'Hmm.', signature: 'abc' },
        { type: 'redacted_thinking', data: 'x' },
      ],
      something_new: { a: [1, { b: null }] },
    };
    const sentCall = {
      id: 'functions.search:0',
      type: 'function',
      function: { name: 'search', arguments: '{ "query" : "me" }' },
      extra_content: { google: { thought_signature: 'sig' } },
    };
    const answer = streams(chunks(delta({ ...given, content: 'Let me look.' }), call({ index: 0, ...sentCall }), stop));
    const { messages } = await repeated(answer);
    expect(messages[2]).toEqual({ role: 'assistant', content: 'Let me look.', ...given, tool_calls: [sentCall] });
    expect(messages[3]).toEqual({ role: 'tool', tool_call_id: sentCall.id, content: 'of call-1-1' });
  });

  it('joins what arrived in pieces', async () => {
    const answer = streams(
      chunks(
        delta({ reasoning: 'H', reasoning_details: [{ type: 'reasoning.text', text: 'H', index: 0, format: 'f' }] }),
        delta({ reasoning: 'm', reasoning_details: [{ type: 'reasoning.text', text: 'm', index: 0, format: 'f' }] }),
        delta({ reasoning_details: [{ type: 'reasoning.text', signature: 'abc', index: 0 }] }),
        delta({ thinking_blocks: [{ type: 'thinking', thinking: 'H', signature: '' }] }),
        delta({ thinking_blocks: [{ type: 'thinking', thinking: 'm', signature: null }] }),
        delta({ thinking_blocks: [{ type: 'thinking', thinking: '', signature: 'one' }] }),
        delta({ thinking_blocks: [{ type: 'thinking', thinking: 'A', signature: 'two' }] }),
        call(CALL_OF_SEARCH),
        stop,
      ),
    );
    const { messages } = await repeated(answer);
    expect(messages[2]).toMatchObject({
      content: null,
      reasoning: 'Hm',
      reasoning_details: [{ type: 'reasoning.text', text: 'Hm', index: 0, format: 'f', signature: 'abc' }],
      thinking_blocks: [
        { type: 'thinking', thinking: 'Hm', signature: 'one' },
        { type: 'thinking', thinking: 'A', signature: 'two' },
      ],
    });
  });

  it('has its content as it was, tags and parts included', async () => {
    const tags = await repeated(
      streams(chunks(delta({ content: '<think>Hm.</think>\n\nSo' }), call(CALL_OF_SEARCH), stop)),
    );
    expect(tags.messages[2]?.content).toBe('<think>Hm.</think>\n\nSo');
    const parts = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
      { type: 'text', text: 'So' },
    ];
    const listed = await repeated(streams(chunks(delta({ content: parts }), call(CALL_OF_SEARCH), stop)));
    expect(listed.messages[2]?.content).toEqual(parts);
  });

  it('has ids of nine letters and digits where the endpoint gave none, or one twice', async () => {
    const { id: _none, ...anonymous } = CALL_OF_SEARCH;
    const answers = [
      streams(chunks(call(anonymous), stop)),
      streams(
        chunks(
          call(CALL_OF_SEARCH),
          call({ ...CALL_OF_SEARCH, index: 1 }),
          call({ ...CALL_OF_SEARCH, index: 2, id: 'b' }),
          stop,
        ),
      ),
    ];
    for (const answer of answers) {
      const { messages } = await repeated(answer);
      const ids = messages[2]?.tool_calls?.map(({ id }) => id) ?? [];
      expect(new Set(ids).size).toBe(ids.length);
      expect(messages.slice(3).map((one) => one.tool_call_id)).toEqual(ids);
      expect(ids.filter((id) => id !== 'a' && id !== 'b').every((id) => /^[a-zA-Z0-9]{9}$/.test(id))).toBe(true);
    }
  });

  it('has names that endpoints accept, and arguments that are objects', async () => {
    const one = model();
    const broken = [
      call({ index: 0, id: 'a', function: { name: 'functions.search:0<|x|>', arguments: '{"query":"me"}' } }),
      call({ index: 1, id: 'b', function: { name: 'search', arguments: '{"query": "m' } }),
      stop,
    ];
    const parts = await partsOf(streams(chunks(...broken)), {}, one);
    const toolCalls = ['a', 'b'].map((id) => ({ id, name: 'search', input: {} }));
    const results = ['a', 'b'].map((callId): ModelMessage => ({
      role: 'tool',
      callId,
      name: 'search',
      result: 'none',
    }));
    const said: ModelMessage = { role: 'assistant', text: '', toolCalls, sent: endOf(parts).sent };
    await partsOf(says({ text: ['So'] }), { messages: [{ role: 'user', text: 'Go.' }, said, ...results] }, one);
    const sent = server().requests.at(-1)?.body.messages[2]?.tool_calls ?? [];
    expect(sent.every((made) => /^[a-zA-Z0-9_-]{1,64}$/.test(made.function.name))).toBe(true);
    expect(sent.map((made) => JSON.parse(made.function.arguments))).toEqual([
      { query: 'me' },
      { invalid: '{"query": "m' },
    ]);
  });

  it('is in the general form for another model', async () => {
    const answer = streams(chunks(delta({ reasoning_content: 'Hm.' }), call(CALL_OF_SEARCH), stop));
    const { messages } = await repeated(answer, { model: 'another' });
    expect(messages[2]).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: expect.stringMatching(/^[a-zA-Z0-9]{9}$/),
          type: 'function',
          function: { name: 'search', arguments: '{"query":"me"}' },
        },
      ],
    });
  });

  it('is bounded: its largest members are left out and named', async () => {
    const answer = streams(
      chunks(delta({ reasoning_content: 'x'.repeat(200_000), small: 'kept' }), call(CALL_OF_SEARCH), stop),
    );
    const end = endOf(await partsOf(answer));
    expect(end.omitted).toEqual(['reasoning_content']);
    expect(end.sent?.message).toMatchObject({ small: 'kept', tool_calls: [{ id: 'a' }] });
  });
});

const CALL_OF_SEARCH = {
  index: 0,
  id: 'a',
  type: 'function',
  function: { name: 'search', arguments: '{"query":"me"}' },
};

describe('a request', () => {
  const requestOf = async (more: Partial<ModelCall>): Promise<ChatRequest> => {
    await partsOf(says({ text: ['So'] }), more);
    return server().requests.at(-1)!.body;
  };
  const used: readonly ModelMessage[] = [
    { role: 'user', text: 'Find me.' },
    { role: 'assistant', text: '', toolCalls: [{ id: 'call-1-1', name: 'search', input: { query: 'me' } }] },
    { role: 'tool', callId: 'call-1-1', name: 'search', result: 'nothing' },
  ];

  it('keeps its tools while the history has calls, and says that none may be called', async () => {
    const last = await requestOf({ messages: used, mayCallTools: false });
    expect(last).toMatchObject({
      tool_choice: 'none',
      tools: [{ function: { name: 'search' } }, { function: { name: 'now' } }],
    });
    const gone = await requestOf({ messages: used, tools: [] });
    expect(gone).toMatchObject({
      tool_choice: 'none',
      tools: [{ function: { name: 'search', parameters: { type: 'object' } } }],
    });
    expect(await requestOf({})).not.toHaveProperty('tool_choice');
    expect(await requestOf({ tools: [] })).not.toHaveProperty('tools');
  });

  it('takes calls that were made nevertheless for calls of no tool', async () => {
    const parts = await partsOf(streams(chunks(call(CALL_OF_SEARCH), stop)), { messages: used, mayCallTools: false });
    expect(callsOf(parts)).toEqual([['search', 'unknown_tool']]);
  });

  it('has roles in turn, begins with a user, and has no empty content', async () => {
    const { messages } = await requestOf({
      messages: [
        { role: 'assistant', text: 'Hello.', toolCalls: [] },
        { role: 'assistant', text: 'Again.', toolCalls: [] },
        { role: 'user', text: '' },
        { role: 'user', text: 'One?' },
        { role: 'assistant', text: ' ', toolCalls: [] },
        { role: 'user', text: 'Two?' },
        ...used,
      ],
    });
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'assistant', 'tool']);
    expect(messages[2]?.content).toBe('Hello.\n\nAgain.');
    expect(messages[3]?.content).toBe('(no text)\n\nOne?\n\nTwo?\n\nFind me.');
    expect(messages.every(({ content }) => content === null || String(content).trim() !== '')).toBe(true);
    expect((await requestOf({ messages: [] })).messages.map(({ role }) => role)).toEqual(['system', 'user']);
  });

  it('shows tools by schemas that strict endpoints accept', async () => {
    const { tools } = await requestOf({ tools: [{ name: 'x', description: '', input: { jsonSchema: {} } }] });
    expect(tools?.[0]?.function.parameters).toEqual({ type: 'object', properties: {} });
  });
});
