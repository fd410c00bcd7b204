/** OpenAI's reasoning models. */
import { callDeltas, callsOf, data, ending, type Family, messageOf, reasonOf } from './endpoint.ts';
import { everyCallIsAnswered, everyResultHasACall, namesFit, parameter, schemas } from './rules.ts';

const KNOWN = new Set(
  (
    'model messages tools tool_choice parallel_tool_calls stream stream_options max_completion_tokens max_tokens ' +
    'temperature top_p reasoning_effort response_format stop n seed user metadata store service_tier verbosity'
  ).split(' '),
);

export const openai: Family = {
  name: 'openai',
  // covan-ai/covan#112, langchain-ai/langchain#32477
  thoughtTokens: 1_408,
  rules: [
    parameter(
      'max_tokens',
      'IBM/chuk-llm#3',
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    ),
    parameter(
      'temperature',
      'decolua/9router#560',
      "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
      1,
    ),
    {
      says: 'no members of the request that the API does not have',
      source: 'davidmigloz/langchain_dart#712, nashsu/llm_wiki#336',
      broken(request) {
        const unknown = Object.keys(request).find((name) => !KNOWN.has(name));
        return unknown === undefined ? null : `Unrecognized request argument supplied: ${unknown}`;
      },
    },
    {
      says: 'at most 128 tools',
      source: 'zed-industries/zed#32946',
      broken: ({ tools = [] }) =>
        tools.length <= 128
          ? null
          : `Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length ${tools.length} instead.`,
    },
    namesFit(
      'mcp-use/mcp-use#90, anomalyco/opencode#3523',
      (path) =>
        `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
    ),
    {
      says: 'the schema of a tool is of an object, and each array has items',
      source: 'OpenAI documentation, "Function calling"; langgenius/dify#22867',
      broken(request) {
        const wrong = schemas(request).find(
          ({ path, schema }) =>
            (path.endsWith('.parameters') && schema['type'] !== 'object') ||
            (schema['type'] === 'array' && schema['items'] === undefined) ||
            (schema['required'] !== undefined && !Array.isArray(schema['required'])),
        );
        return wrong === undefined
          ? null
          : `Invalid schema for function '${wrong.path}': ${JSON.stringify(wrong.schema)}`;
      },
    },
    everyCallIsAnswered(
      'OpenAI documentation, "Function calling"; CopilotKit/CopilotKit#7277',
      (ids) =>
        `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`,
    ),
    everyResultHasACall(
      'miurla/morphic#136',
      () =>
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    ),
  ],
  refusal: (message, { parameter: param = null }) => ({
    status: 400,
    body: {
      error: { message, type: 'invalid_request_error', param, code: param === null ? null : 'unsupported_parameter' },
    },
  }),
  // Reasoning is hidden. Usage is null in each chunk but the last; obfuscation pads chunks.
  answer(said, conversation) {
    const { model } = conversation;
    const calls = callsOf(said, conversation, (_name, n) => `call_${String(n).padStart(24, 'A')}`);
    const deltas = [
      { role: 'assistant', content: '', refusal: null },
      ...(said.text ?? []).map((content) => ({ content })),
      ...callDeltas(calls),
    ];
    const padded = { obfuscation: 'aB3', system_fingerprint: null, service_tier: 'default', usage: null };
    return {
      events: [
        ...deltas.map((delta) => {
          const choices = [{ index: 0, delta, logprobs: null, finish_reason: null }];
          return data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, choices, ...padded });
        }),
        ...ending(model, reasonOf(said)),
      ],
      message: messageOf(said, calls),
    };
  },
};

/** A reasoning model without the newer names, as Azure serves them: the first chunk has no choices. */
export const azure: Family = {
  ...openai,
  name: 'azure',
  answer(said, conversation) {
    const { events, message } = openai.answer(said, conversation);
    const results = { hate: { filtered: false, severity: 'safe' } };
    // AbanteAI/archive-old-cli-mentat#429; microsoft/autogen#6465: a choice without a delta.
    const filtered = {
      id: '',
      object: '',
      model: '',
      choices: [],
      prompt_filter_results: [{ prompt_index: 0, results }],
    };
    const offsets = {
      id: '',
      model: '',
      choices: [{ index: 0, finish_reason: null, content_filter_results: results }],
    };
    return { events: [data(filtered), ...events.slice(0, -3), data(offsets), ...events.slice(-3)], message };
  },
};
