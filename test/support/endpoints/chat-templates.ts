/** Servers of open models, whose chat templates check the conversation: vLLM and llama.cpp. */
import { callDeltas, callsOf, chunk, data, DONE, type Family, messageOf, reasonOf, USAGE } from './endpoint.ts';
import { argumentsAreJson, everyCallIsAnswered, everyResultHasACall, rolesAlternate } from './rules.ts';

export const vllm: Family = {
  name: 'vllm',
  // open-pencil/open-pencil#454
  thoughtTokens: 2_000,
  rules: [
    rolesAlternate(
      'vllm-project/vllm#6862, suitenumerique/conversations#197',
      'Conversation roles must alternate user/assistant/user/assistant/... Conversation roles must alternate user/assistant/user/assistant/...',
    ),
    everyCallIsAnswered(
      'Mistral template: mistralai/mistral-common',
      () => 'Not the same number of function calls and responses',
    ),
    everyResultHasACall(
      'philschmid/mcp-openai-gemini-llama-example#5',
      () => 'messages with role "tool" must be a response to a preceeding message with "tool_calls".',
    ),
    argumentsAreJson('vllm-project/vllm#43995, vllm-project/vllm#47761', (problem) => problem),
  ],
  refusal: (message) => ({
    status: 400,
    body: { object: 'error', message, type: 'BadRequestError', param: null, code: 400 },
  }),
  // Reasoning has the name `reasoning` (azrtydxb/Fastllm-proxy#23), calls continue with null names and ids
  // (vllm-project/vllm#38640), the last text comes with the reason (vllm-project/vllm#36944), usage in each chunk.
  answer(said, conversation) {
    const { model } = conversation;
    const calls = callsOf(said, conversation, (_name, n) => `chatcmpl-tool-${String(n).padStart(32, '0')}`);
    const deltas = [
      { role: 'assistant', content: '' },
      ...(said.reasoning ?? []).map((reasoning) => ({ reasoning })),
      ...(said.text ?? []).map((content) => ({ content })),
      ...callDeltas(calls, { id: null, type: null, name: null }),
    ];
    const usage = { ...USAGE, prompt_tokens_details: null };
    return {
      events: [
        ...deltas.map((delta, index) => {
          const finish_reason = index === deltas.length - 1 ? reasonOf(said) : null;
          const choices = [{ index: 0, delta, logprobs: null, finish_reason, stop_reason: null, token_ids: null }];
          return data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, choices, usage });
        }),
        data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model, choices: [], usage }),
        DONE,
      ],
      message: messageOf(said, calls),
    };
  },
};

export const llamacpp: Family = {
  name: 'llamacpp',
  rules: [
    argumentsAreJson(
      'OpenHands/OpenHands#13949, am17an/llama.cpp#43',
      (problem) => `Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] ${problem}`,
    ),
    rolesAlternate(
      'sterlp/eclipse-peon-ai#75',
      'Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.',
    ),
  ],
  // An error of the template is an error of the server: am17an/llama.cpp#43.
  refusal: (message) => ({ status: 500, body: { error: { code: 500, message, type: 'server_error' } } }),
  // Thoughts are between tags in the text, which split anywhere: antoinezambelli/forge#113. Usage is in the last chunk with
  // an empty list of choices; `timings` are members of its own.
  answer(said, conversation) {
    const { model } = conversation;
    const calls = callsOf(said, conversation, (_name, n) => `${String(n).padStart(32, 'k')}`);
    const thoughts = said.reasoning === undefined ? '' : `<think>\n${said.reasoning.join('')}\n</think>\n\n`;
    const pieces = [...(thoughts.match(/[^]{1,4}/g) ?? []), ...(said.text ?? [])];
    const timings = { prompt_n: 12, predicted_n: 5 };
    const choices = [{ index: 0, delta: {}, finish_reason: reasonOf(said) }];
    return {
      events: [
        chunk(model, { role: 'assistant', content: null }),
        ...pieces.map((content) => chunk(model, { content })),
        ...callDeltas(calls).map((delta) => chunk(model, delta)),
        data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model, choices }),
        data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model, choices: [], usage: USAGE, timings }),
        DONE,
      ],
      message: messageOf(said, calls),
    };
  },
};
