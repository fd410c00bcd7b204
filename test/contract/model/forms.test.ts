/* The forms in which endpoints send answers, and what they want to get back: each is from a documented or reported endpoint. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

import {
  type ModelCall,
  type ModelEndpoint,
  type ModelLimits,
  type ModelMessage,
  type ModelPart,
  NO_USAGE,
  openAICompatibleModel,
} from '#libs/platform/model/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { eventually } from '#test/support/eventually.ts';
import {
  type Answer,
  type ChatRequest,
  chunks,
  delta,
  DONE,
  type ModelServer,
  refuses,
  says,
  startModelServer,
  streams,
} from '#test/support/model-server.ts';

const search = { name: 'search', description: 'Searches.', input: z.object({ query: z.string() }) };
const now = { name: 'now', description: 'Tells the time.', input: z.object({}) };

const CALL: ModelCall = {
  instructions: 'Answer briefly.',
  messages: [{ role: 'user', text: 'Who are you?' }],
  tools: [search, now],
  model: null,
  temperature: null,
  reasoningEffort: null,
  thinkingBudget: null,
};

let server: ModelServer;
let models: ModelEndpoint[];

beforeEach(async () => {
  server = await startModelServer();
  models = [];
});
afterEach(async () => {
  await Promise.all(models.map((model) => model.close()));
  await server.stop();
});

function model(limits: ModelLimits = {}): ModelEndpoint {
  const created = openAICompatibleModel({
    baseUrl: server.baseUrl,
    apiKey: 'secret-key',
    name: 'small',
    metrics: createMetrics({ processMetrics: false }),
    limits: { totalMs: 20_000, firstPartMs: 10_000, idleMs: 10_000, ...limits },
  });
  models.push(created);
  return created;
}

async function partsOf(answer: Answer | readonly Answer[], call: Partial<ModelCall> = {}, one = model()) {
  server.script(...[answer].flat());
  return Array.fromAsync(one.stream({ ...CALL, ...call }, new AbortController().signal));
}

function textOf(parts: readonly ModelPart[], type: 'text' | 'reasoning' = 'text'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('');
}

function callsOf(parts: readonly ModelPart[]) {
  return parts.flatMap((part) => {
    if (part.type === 'tool_call') return [[part.call.name, part.call.input]];
    return part.type === 'invalid_tool_call' ? [[part.name, part.problem]] : [];
  });
}

function endOf(parts: readonly ModelPart[]) {
  const last = parts.at(-1);
  if (last?.type !== 'finish') throw new Error(`no finish: ${JSON.stringify(last)}`);
  return last;
}

const so = delta({ content: 'So' });
const stop = delta({}, 'stop');
const body = (message: object, more: object = {}): Answer => {
  const json = { model: 'small-2026', choices: [{ index: 0, message, finish_reason: 'stop' }], ...more };
  return (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json));
};

describe('a stream', () => {
  const forms: Readonly<Record<string, Answer>> = {
    'in one piece': streams(`${chunks(so, stop)}${DONE}`),
    'with carriage returns': streams(`${chunks(so, stop)}${DONE}`.replaceAll('\n', '\r\n')),
    'with a byte order mark': streams(`\uFEFF${chunks(so, stop)}${DONE}`),
    'with comments, pings and fields that are unknown': streams(
      `: OPENROUTER PROCESSING\n\nevent: ping\ndata: ping\n\nretry: 10\nid: 1\nfoo: bar\n${chunks(so)}data: {"type":"ping"}\n\n: k\n\n${chunks(stop)}${DONE}`,
    ),
    'without a space after the colon': streams(`${chunks(so, stop)}${DONE}`.replaceAll('data: ', 'data:')),
    'with data in several lines': streams(
      'data: {"choices":[{"delta":{"content":\ndata: "So"},"finish_reason":"stop"}]}\n\n',
    ),
    'without [DONE]': streams(chunks(so, stop)),
    'without an empty line at the end': streams(chunks(so, stop).trimEnd()),
    'without a reason, but with [DONE]': streams(`${chunks(so)}${DONE}`),
    'that stays open after [DONE]': streams(`${chunks(so, stop)}${DONE}`, () => undefined),
    'that stays open after the reason': streams(chunks(so, stop), () => undefined),
    'that breaks off after the reason': streams(chunks(so, stop), (response) => setImmediate(() => response.destroy())),
    'with an error after the reason': streams(chunks(so, stop, { error: { message: 'late', code: 500 } })),
    'with chunks without choices, delta or content': streams(
      chunks({ choices: [] }, { choices: null }, {}, delta(null), delta({ content: null }), so, stop, { usage: null }),
    ),
    'with text as a list of parts': streams(chunks(delta({ content: [{ type: 'text', text: 'So' }] }), stop)),
    'with another choice': streams(
      chunks(
        {
          choices: [
            { index: 1, delta: { content: 'No' } },
            { index: 0, delta: { content: 'So' } },
          ],
        },
        stop,
      ),
    ),
    'with the whole message once more at its end': streams(
      chunks(so, { choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'So' } }] }),
    ),
    'that is a whole message': streams(
      chunks({ choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'So' } }] }),
    ),
    'in the place of which there is a body': body({ role: 'assistant', content: 'So' }),
  };

  it.each(Object.entries(forms))('%s is one answer', async (_what, answer) => {
    const parts = await partsOf(answer);
    expect(parts).toMatchObject([
      { type: 'text', text: 'So' },
      { type: 'finish', reason: 'stop', omitted: [] },
    ]);
  });

  it('frees its connection, also if the endpoint keeps it open', async () => {
    await partsOf(streams(`${chunks(so, stop)}${DONE}`, () => undefined));
    await eventually(() => expect(server.open).toBe(0));
  });

  it('uses a connection again that is kept alive', async () => {
    const one = model();
    for (let count = 0; count < 3; count += 1) await partsOf(says({ text: ['So'] }), {}, one);
    expect(server.open).toBeLessThan(3);
  });

  it('is alive as long as bytes arrive', async () => {
    const pings: Answer = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let count = 0;
      const timer = setInterval(() => {
        if ((count += 1) < 12) response.write(': still thinking\n\n');
        else response.end(chunks(so, stop));
      }, 50);
      response.on('close', () => clearInterval(timer));
    };
    expect(textOf(await partsOf(pings, {}, model({ firstPartMs: 400, idleMs: 400 })))).toBe('So');
  });

  it('gives whole characters and well-formed text', async () => {
    const cut = streams(
      `data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\ndata: {"choices":[{"delta":{"content":"\\ude00b\\ud83d"},"finish_reason":"stop"}]}\n\n`,
    );
    const parts = await partsOf(cut);
    expect(textOf(parts)).toBe('a😀b\uFFFD');
    expect(parts.every((part) => part.type !== 'text' || part.text.isWellFormed())).toBe(true);
    const args = '{"query":"\\ud83d"}';
    const call = delta(
      { tool_calls: [{ index: 0, id: 'a\ud83d', function: { name: 'search', arguments: args } }] },
      'stop',
    );
    const called = await partsOf(streams(chunks(call)));
    expect(callsOf(called)).toEqual([['search', { query: '\uFFFD' }]]);
    expect(JSON.stringify(called)).not.toContain('\\ud83d');
  });
});

describe('JSON that is nested more deeply than it can be written again', () => {
  const deep = `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;

  it('is no input of a tool', async () => {
    const find = { name: 'find', description: 'Finds.', input: { jsonSchema: { type: 'object' } } };
    const called = delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'find', arguments: deep } }] }, 'stop');
    const parts = await partsOf(streams(chunks(called)), { tools: [find] });
    expect(parts).toContainEqual(
      expect.objectContaining({ type: 'invalid_tool_call', name: 'find', problem: 'invalid_arguments' }),
    );
  });

  it('is left out of what a message says besides', async () => {
    const parts = await partsOf(
      streams(`data: {"choices":[{"delta":{"content":"So","extra":${deep}},"finish_reason":"stop"}]}\n\n`),
    );
    expect(textOf(parts)).toBe('So');
  });
});

const call = (members: object): object => delta({ tool_calls: [members] });
const args = (text: unknown): object => ({ function: { arguments: text } });
const me = ['search', { query: 'me' }];
const you = ['search', { query: 'you' }];

describe('tool calls', () => {
  const whole = (id: string | undefined, query: string, more: object = {}) => {
    return {
      ...(id !== undefined && { id }),
      ...more,
      function: { name: 'search', arguments: `{"query":"${query}"}` },
    };
  };
  const forms: Readonly<Record<string, { readonly deltas: readonly object[]; readonly calls: readonly unknown[] }>> = {
    'without an index': {
      deltas: [call({ id: 'a', function: { name: 'search', arguments: '{"query":' } }), call(args('"me"}'))],
      calls: [me],
    },
    'without an id in the first delta': {
      deltas: [
        call({ index: 0, function: { name: 'search' } }),
        call({ index: 0, id: 'a', ...args('{"query":"me"}') }),
      ],
      calls: [me],
    },
    'with the id and the name in each delta': {
      deltas: ['{"query"', ':"me', '"}', ''].map((piece) =>
        call({ index: 0, id: 'a', function: { name: 'search', arguments: piece } }),
      ),
      calls: [me],
    },
    'with another id in each delta': {
      deltas: [
        call({ index: 0, id: 'a', function: { name: 'search', arguments: '' } }),
        call({ index: 0, id: 'b', ...args('{"query":') }),
        call({ index: 0, id: 'c', ...args('"me"}') }),
      ],
      calls: [me],
    },
    'with the name in pieces': {
      deltas: [
        call({ index: 0, id: 'a', function: { name: 'sea' } }),
        call({ index: 0, function: { name: 'rch', arguments: '{"query":"me"}' } }),
      ],
      calls: [me],
    },
    'with arguments that are an object': {
      deltas: [call({ index: 0, id: 'a', function: { name: 'search', arguments: { query: 'me' } } })],
      calls: [me],
    },
    'with arguments that are JSON in JSON': {
      deltas: [call({ index: 0, id: 'a', function: { name: 'search', arguments: '"{\\"query\\":\\"me\\"}"' } })],
      calls: [me],
    },
    'with arguments that follow empty ones': {
      deltas: [
        call({ index: 0, id: 'a', function: { name: 'search', arguments: '{}' } }),
        call({ index: 0, ...args('{"query":"me"}') }),
      ],
      calls: [me],
    },
    'with empty arguments': {
      deltas: [call({ index: 0, id: 'a', function: { name: 'now', arguments: '' } })],
      calls: [['now', {}]],
    },
    'without arguments': { deltas: [call({ index: 0, id: 'a', function: { name: 'now' } })], calls: [['now', {}]] },
    'several with one index and different ids': {
      deltas: [call(whole('a', 'me', { index: 0 })), call(whole('b', 'you', { index: 0 }))],
      calls: [me, you],
    },
    'several with one index and no ids': {
      deltas: [call(whole('', 'me', { index: 0 })), call(whole('', 'you', { index: 0 }))],
      calls: [me, you],
    },
    'several without index and ids': {
      deltas: [delta({ tool_calls: [whole(undefined, 'me'), whole(undefined, 'you')] })],
      calls: [me, you],
    },
    'with pieces of two calls in turn': {
      deltas: [
        delta({ tool_calls: [{ index: 0, id: 'a', function: { name: 'search', arguments: '{"query":' } }] }),
        delta({ tool_calls: [{ index: 1, id: 'b', function: { name: 'search', arguments: '{"query":"y' } }] }),
        delta({
          tool_calls: [
            { index: 0, ...args('"me"}') },
            { index: 1, ...args('ou"}') },
          ],
        }),
      ],
      calls: [me, you],
    },
    'of the former kind': {
      deltas: [
        delta({ function_call: { name: 'search', arguments: '{"query":' } }),
        delta({ function_call: { arguments: '"me"}' } }, 'function_call'),
      ],
      calls: [me],
    },
    'with marks of a chat format around the name': {
      deltas: [call(whole('functions.search:0', 'me')), call({ function: { name: 'functions.now<|call|>' } })],
      calls: [me, ['now', {}]],
    },
    'with no content, or an empty list of calls': {
      deltas: [
        delta({ content: null, tool_calls: [] }),
        call(whole('a', 'me')),
        delta({ content: '', tool_calls: [] }),
      ],
      calls: [me],
    },
    'of a tool that does not exist': {
      deltas: [call({ index: 0, id: 'a', function: { name: 'destroy', arguments: '{}' } })],
      calls: [['destroy', 'unknown_tool']],
    },
  };

  it.each(Object.entries(forms))('%s are read', async (_what, { deltas, calls }) => {
    for (const finish of ['tool_calls', 'stop']) {
      const parts = await partsOf(streams(chunks(...deltas, delta({}, finish))));
      expect(callsOf(parts)).toEqual(calls);
      expect(endOf(parts).reason).toBe('tool_calls');
    }
  });

  it('in a body that is no stream are read', async () => {
    const parts = await partsOf(body({ content: null, tool_calls: [whole('a', 'me')] }));
    expect(callsOf(parts)).toEqual([me]);
  });

  it('that were announced and are not there end an answer', async () => {
    expect(endOf(await partsOf(streams(chunks(so, delta({ tool_calls: [] }, 'tool_calls'))))).reason).toBe('stop');
  });

  it('are bounded', async () => {
    const long = call({
      index: 0,
      id: 'a',
      function: { name: 'search', arguments: `{"query":"${'x'.repeat(100_000)}"}` },
    });
    const many = delta({
      tool_calls: Array.from({ length: 100 }, (_, index) => ({ index, ...whole(`c${index}`, 'me') })),
    });
    const tooLong = await partsOf(streams(chunks(long, stop)));
    expect(callsOf(tooLong)).toEqual([['search', 'invalid_arguments']]);
    const tooMany = await partsOf(streams(chunks(many, stop)));
    expect(callsOf(tooMany)).toHaveLength(64);
    expect(endOf(tooMany).omitted).toEqual(['36 further tool calls']);
  });
});

describe('reasoning', () => {
  const forms: Readonly<Record<string, readonly object[]>> = {
    reasoning_content: [delta({ reasoning_content: 'Hm' }), delta({ reasoning_content: 'm.' })],
    reasoning: [delta({ reasoning: 'Hm' }), delta({ reasoning: 'm.' })],
    'two names': [delta({ reasoning: 'Hmm.', reasoning_content: 'Hmm.' })],
    reasoning_details: [
      delta({ reasoning: 'Hmm.', reasoning_details: [{ type: 'reasoning.text', text: 'Hmm.', index: 0 }] }),
    ],
    'reasoning_details alone': [delta({ reasoning_details: [{ type: 'reasoning.summary', summary: 'Hmm.' }] })],
    thinking_blocks: [delta({ thinking_blocks: [{ type: 'thinking', thinking: 'Hmm.', signature: 's' }] })],
    'parts of the content': [
      delta({
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'Hmm.' }] },
          { type: 'text', text: '' },
        ],
      }),
    ],
    'tags in pieces': ['\n<th', 'ink>', 'Hm', 'm.</th', 'ink', '>', '\n\n'].map((content) => delta({ content })),
    'other tags': [delta({ content: '<thought>Hmm.</thought>' })],
    'tags around nothing, and once more': [delta({ content: '<think>\n\n</think>\n<think>Hmm.</think>' })],
  };

  it.each(Object.entries(forms))('as %s is reasoning, and the rest is text', async (_what, deltas) => {
    const parts = await partsOf(streams(chunks(...deltas, so, stop)));
    expect(textOf(parts, 'reasoning').trim()).toBe('Hmm.');
    expect(textOf(parts)).toBe('So');
  });

  it('without an end is reasoning; tags within a text are text', async () => {
    const open = await partsOf(streams(chunks(delta({ content: '<think>Hmm.' }, 'length'))));
    expect([textOf(open, 'reasoning'), textOf(open), endOf(open).reason]).toEqual(['Hmm.', '', 'length']);
    const within = 'Write `<think>` and </think>.';
    expect(textOf(await partsOf(streams(chunks(delta({ content: within }), stop))))).toBe(within);
    expect(textOf(await partsOf(streams(chunks(delta({ content: '<thi' }), stop))))).toBe('<thi');
  });
});

describe('the end of an answer', () => {
  it('has the reason, in a word of the endpoint if it is none that all have', async () => {
    const reasons = { MAX_TOKENS: 'length', end_turn: 'stop', SAFETY: 'content_filter', MALFORMED: 'MALFORMED' };
    for (const [given, reason] of Object.entries(reasons)) {
      expect(endOf(await partsOf(streams(chunks(so, delta({}, given))))).reason).toBe(reason);
    }
  });

  it('names the model that answered', async () => {
    expect(endOf(await partsOf(streams(chunks(so, stop)))).model).toBe('small-2026');
    const silent = streams('data: {"choices":[{"delta":{"content":"So"},"finish_reason":"stop"}]}\n\n');
    expect(endOf(await partsOf(silent, { model: 'large' })).model).toBe('large');
  });

  it('has the usage wherever it is, and none that was not reported', async () => {
    const usages: readonly (readonly [object, object])[] = [
      [
        { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } },
        { inputTokens: 7, outputTokens: 3 },
      ],
      [{ usage: { input_tokens: 7, output_tokens: 3 } }, { inputTokens: 7, outputTokens: 3 }],
      [{ x_groq: { usage: { prompt_tokens: 7 } } }, { inputTokens: 7, outputTokens: null }],
      [{ choices: [{ index: 0, delta: {}, usage: { prompt_tokens: 7 } }] }, { inputTokens: 7 }],
      [{ usage: { prompt_tokens: 7, prompt_cache_hit_tokens: 2 } }, { cachedInputTokens: 2 }],
      [{ usage: { prompt_tokens: '7', completion_tokens: 1.5 } }, NO_USAGE],
      [{ usage: null }, NO_USAGE],
    ];
    for (const [chunk, usage] of usages) {
      expect(endOf(await partsOf(streams(chunks(so, stop, chunk)))).usage).toMatchObject(usage);
    }
  });

  it('of blanks has no text', async () => {
    const parts = await partsOf(streams(chunks(delta({ content: '\n' }), delta({ content: ' ' }), stop)));
    expect(parts).toMatchObject([{ type: 'finish', reason: 'stop' }]);
    const led = await partsOf(streams(chunks(delta({ content: '\n' }), so, stop)));
    expect(led[0]).toEqual({ type: 'text', text: '\nSo' });
  });
});

describe('an error in a stream', () => {
  const error = (members: object) => streams(chunks(delta({ reasoning_content: 'Hm.' }), { error: members }));
  it.each([
    [{ code: 429, message: 'slow down' }, 'rate_limited'],
    [{ type: 'overloaded_error', message: 'Overloaded' }, 'unavailable'],
    [{ code: 'rate_limit_exceeded', message: 'slow down' }, 'rate_limited'],
    [{ status: 'RESOURCE_EXHAUSTED', message: 'quota' }, 'rate_limited'],
    [{ type: 'invalid_request_error', message: 'no' }, 'refused'],
    [{ code: '401', message: 'no' }, 'unauthorized'],
    [{ message: 'something' }, 'unavailable'],
  ])('%j is what its status would be', async (members, reason) => {
    expect((await partsOf(error(members), {}, model({ maxAttempts: 1 }))).at(-1)).toMatchObject({
      type: 'error',
      reason,
    });
  });

  it.each([
    ['of the choice', chunks({ choices: [{ index: 0, delta: {}, error: { code: 502 }, finish_reason: 'error' }] })],
    ['as a reason', chunks(delta({}, 'error'))],
    ['as an event', 'event: error\ndata: {"message":"overloaded"}\n\n'],
    ['as a sentence', chunks({ error: 'overloaded' })],
    ['as an object', chunks({ object: 'error', message: 'overloaded', code: 503 })],
    ['as a detail', chunks({ detail: 'overloaded' })],
  ])('%s is one', async (_what, text) => {
    const parts = await partsOf(streams(text), {}, model({ maxAttempts: 1 }));
    expect(parts).toMatchObject([{ type: 'error', reason: 'unavailable' }]);
  });

  it('is retried while there is no text, and its tokens are counted', async () => {
    const failing = streams(
      chunks(
        delta({ reasoning_content: 'Hm.' }),
        { usage: { prompt_tokens: 5, completion_tokens: 1 } },
        { error: { code: 503 } },
      ),
    );
    const whole = streams(
      chunks(delta({ reasoning: 'Aha.' }), so, stop, { usage: { prompt_tokens: 5, completion_tokens: 2 } }),
    );
    const parts = await partsOf([failing, whole]);
    expect(parts.map(({ type }) => type)).toEqual(['reasoning', 'restart', 'reasoning', 'text', 'finish']);
    expect(endOf(parts).usage).toMatchObject({ inputTokens: 10, outputTokens: 3 });
  });

  it('after text ends the answer, with the tokens so far', async () => {
    const failing = streams(
      chunks(so, { usage: { prompt_tokens: 5, completion_tokens: 1 } }, { error: { code: 429 } }),
    );
    expect(await partsOf([failing, says({ text: ['All'] })])).toMatchObject([
      { type: 'text' },
      { type: 'error', reason: 'rate_limited', usage: { inputTokens: 5 } },
    ]);
    expect(server.requests).toHaveLength(1);
  });
});

describe('a wait that an endpoint asks for', () => {
  it.each(['soon', '-1', '', 'tomorrow 1', '1e9'])('as %j cannot be read, and is its own then', async (value) => {
    const parts = await partsOf([refuses(429, { 'retry-after': value }), says({ text: ['So'] })]);
    expect(parts.map(({ type }) => type)).toEqual(['text', 'finish']);
  });

  it('in milliseconds that are empty is none', async () => {
    const parts = await partsOf([refuses(429, { 'retry-after-ms': '', 'retry-after': '0' }), says({ text: ['So'] })]);
    expect(textOf(parts)).toBe('So');
  });
});

describe('what the endpoint said', () => {
  it.each([
    [{ error: { message: 'bad thing' } }, 'status 400: bad thing'],
    [{ error: 'bad thing' }, 'status 400: bad thing'],
    [{ detail: [{ loc: ['body', 'x'], msg: 'bad thing', input: 'huge' }] }, 'status 400: bad thing'],
    [[{ error: { message: 'bad thing' } }], 'status 400: bad thing'],
    [
      { error: { message: 'Provider returned error', metadata: { raw: '{"message":"bad thing"}' } } },
      'status 400: Provider returned error bad thing',
    ],
    ['bad thing', 'status 400: bad thing'],
  ])('%j is for administrators', async (said, detail) => {
    const answer: Answer = (response) => void response.writeHead(400).end(JSON.stringify(said));
    expect((await partsOf(answer)).at(-1)).toMatchObject({ type: 'error', reason: 'refused', detail });
  });

  it('loses the key', async () => {
    const end = (await partsOf(refuses(401, {}, 'Incorrect API key provided: secret-key.'))).at(-1);
    expect(end).toMatchObject({ detail: 'status 401: Incorrect API key provided: [redacted].' });
  });
});

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
  return server.requests.at(-1)!.body;
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
    const sent = server.requests.at(-1)?.body.messages[2]?.tool_calls ?? [];
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
    return server.requests.at(-1)!.body;
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
