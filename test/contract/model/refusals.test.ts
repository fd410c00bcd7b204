/* What endpoints refuse by name, in their own words, and what the next request does without. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { type ModelCall, type ModelEndpoint, openAICompatibleModel } from '#libs/platform/model/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { type Answer, type ChatRequest, type ModelServer, says, startModelServer } from '#test/support/model-server.ts';

const tool = (name: string) => ({ name, description: 'Does it.', input: { jsonSchema: { type: 'object' } } });

const CALL: ModelCall = {
  instructions: 'Answer briefly.',
  messages: [{ role: 'user', text: 'Who are you?' }],
  tools: [tool('search'), tool('orders__find')],
  model: null,
  temperature: 0.1,
  reasoningEffort: 'low',
  thinkingBudget: 64,
  maxOutputTokens: 128,
};

let server: ModelServer;
let endpoint: ModelEndpoint;

beforeEach(async () => {
  server = await startModelServer();
  const metrics = createMetrics({ processMetrics: false });
  endpoint = openAICompatibleModel({ baseUrl: server.baseUrl, name: 'small', metrics, limits: { maxAttempts: 1 } });
});
afterEach(async () => {
  await endpoint.close();
  await server.stop();
});

const answers = (status: number, body: unknown): Answer => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return (response) => void response.writeHead(status, { 'content-type': 'application/json' }).end(text);
};

async function endAfter(...script: readonly Answer[]) {
  server.script(...script);
  return (await Array.fromAsync(endpoint.stream(CALL, new AbortController().signal))).at(-1);
}

const yes = says({ text: ['Yes.'] });
const names = (body: ChatRequest | undefined) => Object.keys(body ?? {}).toSorted();
const toolsOf = (body: ChatRequest | undefined) => body?.tools?.map((one) => one.function.name);

const REFUSALS: readonly (readonly [string, number, unknown, string])[] = [
  [
    'OpenAI: a value',
    400,
    {
      error: {
        message:
          "Unsupported value: 'temperature' does not support 0.1 with this model. Only the default (1) value is supported.",
        type: 'invalid_request_error',
        param: 'temperature',
        code: 'unsupported_value',
      },
    },
    'temperature',
  ],
  [
    'Groq: a value',
    400,
    { error: { message: '`reasoning_effort` is not supported with this model' } },
    'reasoning_effort',
  ],
  [
    'FastAPI: an extra input',
    422,
    {
      detail: [
        {
          type: 'extra_forbidden',
          loc: ['body', 'thinking_budget'],
          msg: 'Extra inputs are not permitted',
          input: { temperature: 1 },
        },
      ],
    },
    'thinking_budget',
  ],
  [
    'Mistral: an extra input',
    422,
    {
      object: 'error',
      message: { detail: [{ loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted' }] },
      type: 'invalid_request_error',
    },
    'stream_options',
  ],
  [
    'Google: an unknown name',
    400,
    [
      {
        error: {
          code: 400,
          message: 'Invalid JSON payload received. Unknown name "thinking_budget": Cannot find field.',
          status: 'INVALID_ARGUMENT',
        },
      },
    ],
    'thinking_budget',
  ],
  [
    'LiteLLM: unsupported parameters',
    400,
    {
      error: {
        message:
          "litellm.UnsupportedParamsError: anthropic does not support parameters: ['reasoning_effort'], for model=claude.",
        code: '400',
      },
    },
    'reasoning_effort',
  ],
  [
    'a proxy that answers 500',
    500,
    {
      error: {
        message:
          "litellm.APIError: OpenAIException - Unsupported parameter: 'temperature' is not supported with this model.",
      },
    },
    'temperature',
  ],
  ['a sentence without JSON', 400, 'unknown field temperature', 'temperature'],
];

describe('a parameter that is refused', () => {
  it.each(REFUSALS)('by name is left out (%s), and remembered', async (_what, status, body, name) => {
    const end = await endAfter(answers(status, body), yes);
    expect(end).toMatchObject({ type: 'finish', omitted: [name] });
    await endAfter(yes);
    const [first, second, third] = server.requests.map((request) => names(request.body));
    expect(first).toContain(name);
    expect(second).toEqual(first?.filter((one) => one !== name));
    expect(third).toEqual(second);
  });

  it('is sent under its newer name', async () => {
    const message =
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    await endAfter(answers(400, { error: { message, param: 'max_tokens' } }), yes);
    expect(server.requests[1]?.body).toMatchObject({ max_completion_tokens: 128 });
    expect(server.requests[1]?.body).not.toHaveProperty('max_tokens');
  });

  it('may be one of several, one after another', async () => {
    const of = (name: string) => answers(400, { error: { message: `unknown parameter ${name}`, param: name } });
    const end = await endAfter(of('temperature'), of('thinking_budget'), of('stream_options'), yes);
    expect(end).toMatchObject({ type: 'finish', omitted: ['temperature', 'thinking_budget', 'stream_options'] });
  });

  it('is not remembered if the request is refused without it, too', async () => {
    const refused = answers(400, { error: { message: 'temperature: the account is blocked' } });
    expect(await endAfter(refused)).toMatchObject({ type: 'error', reason: 'refused' });
    expect(server.requests).toHaveLength(2);
    await endAfter(yes);
    expect(server.requests[2]?.body).toHaveProperty('temperature');
  });

  it('in a stream is left out as well', async () => {
    const text = `data: ${JSON.stringify({ error: { message: 'temperature is not supported', code: 400 } })}\n\n`;
    const streamed: Answer = (response) =>
      void response.writeHead(200, { 'content-type': 'text/event-stream' }).end(text);
    expect(await endAfter(streamed, yes)).toMatchObject({ type: 'finish', omitted: ['temperature'] });
  });

  it('is none where the refusal names nothing', async () => {
    expect(await endAfter(answers(400, { error: { message: 'no' } }))).toMatchObject({ type: 'error' });
    expect(await endAfter(answers(401, { error: { message: 'temperature' } }))).toMatchObject({
      reason: 'unauthorized',
    });
    expect(server.requests).toHaveLength(2);
  });
});

describe('what else is refused', () => {
  it.each([
    [
      'OpenAI',
      {
        error: {
          message: "Invalid schema for function 'orders__find': schema must be an object",
          param: 'tools[1].function.parameters',
        },
      },
    ],
    ['Anthropic', { error: { message: 'tools.1.custom.input_schema: JSON schema is invalid' } }],
    [
      'Google',
      [{ error: { message: 'GenerateContentRequest.tools[0].function_declarations[1].parameters: missing field' } }],
    ],
  ])('one tool (%s)', async (_what, body) => {
    expect(await endAfter(answers(400, body), yes)).toMatchObject({ omitted: ['tool orders__find'] });
    expect(toolsOf(server.requests[1]?.body)).toEqual(['search']);
  });

  it.each([
    ['Ollama', 'registry.ollama.ai/library/gemma:2b does not support tools'],
    ['vLLM', '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
    ['OpenRouter', 'No endpoints found that support tool use. Try disabling "search".'],
  ])('all tools (%s)', async (_what, message) => {
    const end = await endAfter(answers(404, { error: { message } }), yes, yes);
    expect(end).toMatchObject({ type: 'finish', omitted: expect.arrayContaining(['tools']) });
    expect(server.requests.at(-1)?.body).not.toHaveProperty('tools');
  });

  it.each([
    ['a template', 'Error rendering prompt with jinja template: "System role not supported"'],
    ['Google', 'Developer instruction is not enabled for models/gemma-3-27b-it'],
    ['OpenAI', "Unsupported value: 'messages[0].role' does not support 'system' with this model."],
  ])('the role of the instructions (%s)', async (_what, message) => {
    await endAfter(answers(400, { error: { message } }), yes);
    expect(server.requests[1]?.body.messages).toEqual([{ role: 'user', content: 'Answer briefly.\n\nWho are you?' }]);
  });

  it('a stream', async () => {
    const message = 'Your organization must be verified to stream this model.';
    await endAfter(answers(400, { error: { message, param: 'stream', code: 'unsupported_value' } }), yes);
    expect(names(server.requests[1]?.body)).not.toContain('stream');
  });

  it.each([
    [
      'Groq',
      "'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning' is unsupported)]",
    ],
    ['DeepSeek', 'The reasoning is not allowed in the input messages'],
  ])('a member that the endpoint has sent itself (%s)', async (_what, message) => {
    server.script(says({ toolCalls: [{ id: 'a', name: 'search', arguments: '{}' }] }));
    const parts = await Array.fromAsync(endpoint.stream(CALL, new AbortController().signal));
    const end = parts.at(-1);
    const sent =
      end?.type === 'finish' && end.sent ? { ...end.sent, message: { ...end.sent.message, reasoning: 'Hm.' } } : null;
    const messages = [
      ...CALL.messages,
      { role: 'assistant', text: '', toolCalls: [{ id: 'c', name: 'search', input: {} }], sent },
      { role: 'tool', callId: 'c', name: 'search', result: 'none' },
    ] as const;
    server.script(answers(400, { error: { message } }), yes);
    await Array.fromAsync(endpoint.stream({ ...CALL, messages }, new AbortController().signal));
    const [, refused, accepted] = server.requests.map(({ body }) => body.messages[2]);
    expect(refused).toHaveProperty('reasoning');
    expect(accepted).not.toHaveProperty('reasoning');
    expect(accepted?.tool_calls).toHaveLength(1);
  });
});
