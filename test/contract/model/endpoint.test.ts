/* The guarantees of `Model` on a real server that speaks the OpenAI API, and on one that does not do it well. */
import { describe, expect, it } from 'vitest';

import type { ModelCall, ModelEndpoint, ModelLimits, ModelPart } from '#libs/platform/model/index.ts';
import { eventually } from '#test/support/eventually.ts';
import {
  type Answer,
  hangs,
  refuses,
  says,
  saysThen,
  saysTooMuch,
  startModelServer,
} from '#test/support/model-server.ts';

import { CALL, useScriptedEndpoint } from './scripted-endpoint.ts';

const { model, partsOf, server } = useScriptedEndpoint();

function isEnd({ type }: ModelPart): boolean {
  return type === 'finish' || type === 'error';
}

describe('an answer', () => {
  it('is streamed as text, reasoning, calls of tools and usage', async () => {
    const answer = says({
      reasoning: ['Let me ', 'think.'],
      text: ['I am ', 'small.'],
      toolCalls: [{ id: 'call-1', name: 'search', arguments: '{"query":"me"}' }],
    });
    expect(await partsOf(answer)).toEqual([
      { type: 'reasoning', text: 'Let me ' },
      { type: 'reasoning', text: 'think.' },
      { type: 'text', text: 'I am ' },
      { type: 'text', text: 'small.' },
      { type: 'tool_call', call: { id: 'call-1', name: 'search', input: { query: 'me' } } },
      {
        type: 'finish',
        reason: 'tool_calls',
        model: 'small',
        usage: { inputTokens: 12, cachedInputTokens: 4, outputTokens: 5, reasoningTokens: 2 },
        cost: null,
        sent: expect.objectContaining({ message: expect.objectContaining({ reasoning_content: 'Let me think.' }) }),
        omitted: [],
      },
    ]);
  });

  it('has a cost where the model has prices and the endpoint counts tokens', async () => {
    const priced = model({}, { prices: { input: 2.5, output: 10 } });
    const costOf = async (one: ModelEndpoint, call: Partial<ModelCall> = {}) =>
      (await partsOf(says({ text: ['So'] }), call, one)).at(-1);
    // 12 input tokens, of which 4 were cached, and 5 output tokens.
    expect(await costOf(priced)).toMatchObject({ type: 'finish', cost: 0.00008 });
    expect(await costOf(priced, { model: 'small' })).toMatchObject({ cost: 0.00008 });
    expect(await costOf(priced, { model: 'another' })).toMatchObject({ type: 'finish', cost: null });
    expect(await costOf(model())).toMatchObject({ type: 'finish', cost: null });
  });

  it('arrives while the model is still writing it', async () => {
    let goOn: () => void = () => undefined;
    server().script(saysThen({ text: ['first'] }, (response) => (goOn = () => void response.end())));
    const stream = model().stream(CALL, new AbortController().signal)[Symbol.asyncIterator]();
    expect(await stream.next()).toEqual({ done: false, value: { type: 'text', text: 'first' } });
    goOn();
    expect(await stream.next()).toMatchObject({ value: { type: 'error' } });
    expect(await stream.next()).toMatchObject({ done: true });
  });

  it('that is cut at the limit of the model says so', async () => {
    expect((await partsOf(says({ text: ['So'], finish: 'length' }))).at(-1)).toMatchObject({
      type: 'finish',
      reason: 'length',
    });
  });
});

describe('a request', () => {
  it('carries the key, the conversation, the tools, and nothing that was not asked for', async () => {
    await partsOf(says({ text: ['Yes.'] }), {
      messages: [
        { role: 'user', text: 'Find me.' },
        { role: 'assistant', text: '', toolCalls: [{ id: 'abcdefghi', name: 'search', input: { query: 'me' } }] },
        { role: 'tool', callId: 'abcdefghi', name: 'search', result: 'nothing' },
      ],
    });
    const [{ headers, body } = { headers: {}, body: null }] = server().requests;
    expect(headers.authorization).toBe('Bearer secret-key');
    expect(headers['user-agent']).toMatch(/^Parley\//);
    expect(body).toMatchObject({ model: 'small', stream: true, stream_options: { include_usage: true } });
    expect(body?.messages).toEqual([
      { role: 'system', content: 'Answer briefly.' },
      { role: 'user', content: 'Find me.' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'abcdefghi', type: 'function', function: { name: 'search', arguments: '{"query":"me"}' } }],
      },
      { role: 'tool', tool_call_id: 'abcdefghi', content: 'nothing' },
    ]);
    expect(body?.tools?.[0]?.function).toMatchObject({ name: 'search', parameters: { required: ['query'] } });
    for (const name of ['temperature', 'reasoning_effort', 'thinking_budget', 'max_tokens']) {
      expect(body).not.toHaveProperty(name);
    }
  });

  it('carries the model, the temperature and the reasoning that a call asks for', async () => {
    const wanted = { model: 'large', temperature: 0, reasoningEffort: 'high', thinkingBudget: 1_024 } as const;
    await partsOf(says({ text: ['Yes.'] }), wanted);
    expect(server().requests[0]?.body).toMatchObject({
      model: 'large',
      temperature: 0,
      reasoning_effort: 'high',
      thinking_budget: 1_024,
    });
  });

  it('is repeated after the time that the endpoint asks for, and by itself after an error of the endpoint', async () => {
    const disconnects: Answer = (response) => void response.destroy();
    const parts = await partsOf([
      disconnects,
      refuses(429, { 'retry-after': '0' }),
      refuses(503, { 'retry-after-ms': '1' }),
      says({ text: ['Now.'] }),
    ]);
    expect(parts.map(({ type }) => type)).toEqual(['text', 'finish']);
    expect(server().requests).toHaveLength(4);
  });

  it('is not repeated once a part was received', async () => {
    const parts = await partsOf([
      saysThen({ text: ['Half'] }, (response) => setImmediate(() => response.destroy())),
      says({ text: ['All'] }),
    ]);
    expect(parts).toMatchObject([
      { type: 'text', text: 'Half' },
      { type: 'error', reason: 'disconnected' },
    ]);
    expect(server().requests).toHaveLength(1);
  });

  it('follows no redirect', async () => {
    const location = `${server().baseUrl}/chat/completions?again`;
    const redirects: Answer = (response) => void response.writeHead(307, { location }).end();
    expect(await partsOf([redirects, says({ text: ['From there.'] })])).toMatchObject([
      { type: 'error', reason: 'refused' },
    ]);
    expect(server().requests).toHaveLength(1);
  });

  it('ends when its reader stops reading', async () => {
    server().script(saysThen({ text: ['first'] }, () => undefined));
    for await (const _part of model().stream(CALL, new AbortController().signal)) break;
    await eventually(() => expect(server().open).toBe(0));
  });

  it('ends when its caller aborts', async () => {
    const caller = new AbortController();
    server().script(saysThen({ text: ['first'] }, () => caller.abort()));
    const read = (): Promise<ModelPart[]> => Array.fromAsync(model().stream(CALL, caller.signal));
    expect((await read()).at(-1)).toMatchObject({ type: 'error', reason: 'aborted' });
    expect(await read()).toMatchObject([{ type: 'error', reason: 'aborted' }]);
    await eventually(() => expect(server().open).toBe(0));
  });
});

interface Case {
  readonly what: string;
  readonly answer: Answer;
  readonly limits?: ModelLimits;
  /** Of the last part. */
  readonly end: object;
  /** The parts before it, if they are certain. */
  readonly before?: readonly object[];
}

const CASES: readonly Case[] = [
  {
    what: '429 that asks to wait longer than the answer may take',
    answer: refuses(429, { 'retry-after': '3600' }),
    end: { type: 'error', reason: 'rate_limited' },
  },
  {
    what: '429 again and again',
    answer: refuses(429, { 'retry-after': '0' }),
    limits: { maxAttempts: 3 },
    end: { type: 'error', reason: 'rate_limited' },
  },
  {
    what: '401',
    answer: refuses(401, {}, 'Incorrect API key provided: secret-key'),
    end: { type: 'error', reason: 'unauthorized' },
  },
  { what: '400', answer: refuses(400), end: { type: 'error', reason: 'refused' } },
  {
    what: 'a hang before the stream',
    answer: hangs,
    limits: { firstPartMs: 300 },
    end: { type: 'error', reason: 'timeout', message: 'the model did not begin to answer in time' },
  },
  {
    what: 'a hang in the middle of the stream',
    answer: saysThen({ text: ['So'] }, () => undefined),
    limits: { idleMs: 300 },
    before: [{ type: 'text', text: 'So' }],
    end: { type: 'error', reason: 'timeout', message: 'the model stopped in the middle of its answer' },
  },
  {
    what: 'an answer without an end',
    answer: says({ text: Array.from({ length: 2_000 }, () => 'on '), pauseMs: 20 }),
    limits: { totalMs: 1_500 },
    end: { type: 'error', reason: 'timeout', message: 'the model did not finish its answer in time' },
  },
  {
    what: 'truncated JSON',
    answer: saysThen({ text: ['So'] }, (response) => response.end('data: {"id":"answer","choices":[{"delta"\n\n')),
    before: [{ type: 'text', text: 'So' }],
    end: { type: 'error', reason: 'bad_response' },
  },
  {
    what: 'a body that is no event stream',
    answer: (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Hello</h1>'),
    end: { type: 'error', reason: 'bad_response' },
  },
  {
    what: 'a call with broken arguments',
    answer: says({ toolCalls: [{ id: 'c', name: 'search', arguments: '{"query": "m' }] }),
    before: [
      { type: 'invalid_tool_call', id: 'c', name: 'search', input: '{"query": "m', problem: 'invalid_arguments' },
    ],
    end: { type: 'finish', reason: 'tool_calls' },
  },
  {
    what: 'a call with arguments of another shape',
    answer: says({ toolCalls: [{ id: 'c', name: 'search', arguments: '{"query":7}' }] }),
    before: [{ type: 'invalid_tool_call', input: '{"query":7}', problem: 'invalid_arguments' }],
    end: { type: 'finish', reason: 'tool_calls' },
  },
  {
    what: 'a call of an unknown tool',
    answer: says({ toolCalls: [{ id: 'c', name: 'destroy', arguments: '{}' }] }),
    before: [{ type: 'invalid_tool_call', name: 'destroy', problem: 'unknown_tool' }],
    end: { type: 'finish', reason: 'tool_calls' },
  },
  {
    what: 'an answer of 50 MB',
    answer: saysTooMuch(50_000_000),
    limits: { maxBytes: 1_000_000 },
    end: { type: 'error', reason: 'too_large' },
  },
  {
    what: 'a disconnect in the middle',
    answer: saysThen({ text: ['So'] }, (response) => setImmediate(() => response.destroy())),
    before: [{ type: 'text', text: 'So' }],
    end: { type: 'error', reason: 'disconnected' },
  },
  {
    what: 'a stream that ends without a reason',
    answer: saysThen({ text: ['So'] }, (response) => response.end()),
    before: [{ type: 'text', text: 'So' }],
    end: { type: 'error', reason: 'bad_response' },
  },
  {
    what: 'a missing [DONE]',
    answer: saysThen({ text: ['So'] }, (response) =>
      response.end('data: {"id":"answer","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'),
    ),
    before: [{ type: 'text', text: 'So' }],
    end: { type: 'finish', reason: 'stop', usage: { inputTokens: null, outputTokens: null } },
  },
  {
    what: 'an error in the stream',
    answer: saysThen({ text: ['So'] }, (response) => response.end('data: {"error":{"message":"overloaded"}}\n\n')),
    before: [{ type: 'text', text: 'So' }],
    end: { type: 'error', reason: 'unavailable' },
  },
];

describe('an endpoint that misbehaves', () => {
  it.each(CASES)('ends in one terminal part: $what', async ({ answer, limits, end, before = [] }) => {
    const parts = await partsOf(answer, {}, model(limits));
    expect(parts.filter(isEnd)).toHaveLength(1);
    expect(parts.at(-1)).toMatchObject(end);
    expect(parts.slice(0, before.length)).toMatchObject(before);
  });

  it('never shows its words to users', async () => {
    const end = (await partsOf(refuses(401, {}, 'Incorrect API key provided: secret-key'))).at(-1);
    expect(end).toMatchObject({ type: 'error', message: 'the model does not accept the configured key' });
    expect(end).toMatchObject({ detail: expect.stringContaining('Incorrect API key') });
  });

  it('that cannot be reached is unavailable', async () => {
    const { baseUrl, stop } = await startModelServer();
    await stop();
    const parts = await partsOf([], {}, model({ maxAttempts: 2 }, { baseUrl }));
    expect(parts).toMatchObject([{ type: 'error', reason: 'unavailable' }]);
  });
});
