/** Claude behind LiteLLM: the rules of the Messages API that its translation leaves to the client, and its own. */
import {
  callDeltas,
  callsOf,
  chunk,
  data,
  DONE,
  type Family,
  type Message,
  messageOf,
  reasonOf,
  USAGE,
} from './endpoint.ts';
import { argumentsAreJson, callsIn, everyCallIsAnswered, noEmptyText, pairs, rolesAlternate } from './rules.ts';

const SIGNATURE = 'EqQBCgIYAhIM1gbcDa9GJwZA2b3h';

/** One block of thoughts, whatever the client has got in pieces. */
const isSigned = (message: Message, wanted: Message): boolean => {
  const blocks = (message['thinking_blocks'] ?? []) as readonly Readonly<Record<string, unknown>>[];
  const [given] = wanted['thinking_blocks'] as readonly Readonly<Record<string, unknown>>[];
  return blocks.length === 1 && blocks[0]?.['signature'] === SIGNATURE && blocks[0]['thinking'] === given?.['thinking'];
};

export const anthropic: Family = {
  name: 'anthropic',
  rules: [
    {
      says: 'tools are in the request while the history has calls',
      // Of Claude itself until LiteLLM 1.108, and still of Bedrock.
      source: 'camel-ai/owl#532, anomalyco/opencode#2915',
      broken: ({ tools = [], messages }) =>
        tools.length > 0 || callsIn(messages).length === 0
          ? null
          : "litellm.UnsupportedParamsError: Anthropic doesn't support tool calling without `tools=` param specified. Pass `tools=` param OR set `litellm.modify_params = True` // `litellm_settings::modify_params: True` to add dummy tool to the request.",
    },
    noEmptyText(
      'NousResearch/hermes-agent#11929, anomalyco/opencode#46291',
      'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"messages: text content blocks must be non-empty"}}',
    ),
    rolesAlternate(
      'BerriAI/litellm#2549',
      'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate between \\"user\\" and \\"assistant\\", and the first message must use the \\"user\\" role"}}',
    ),
    everyCallIsAnswered(
      'Anthropic documentation, "Tool use"',
      (ids) =>
        `litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"messages: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(', ')}"}}`,
    ),
    argumentsAreJson(
      'Anthropic documentation, "Tool use": input is an object',
      (problem) => `litellm.APIConnectionError: ${problem}`,
    ),
    {
      says: 'a message with calls that began with thoughts comes back with them, in one signed block',
      source: 'openai/openai-agents-python#1704, BerriAI/litellm#29428',
      broken(request, conversation) {
        const wrong = pairs(request, conversation).some(
          ([message, wanted]) => wanted['thinking_blocks'] !== undefined && !isSigned(message, wanted),
        );
        return wrong
          ? 'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block"}}'
          : null;
      },
    },
  ],
  // LiteLLM writes the status as a string, and the type as the word None.
  refusal: (message) => ({
    status: 400,
    body: { error: { message: `${message}. Received Model Group=claude`, type: 'None', param: 'None', code: '400' } },
  }),
  answer(said, conversation) {
    const { model } = conversation;
    const calls = callsOf(said, conversation, (_name, n) => `toolu_01${String(n).padStart(22, 'A')}`);
    const thinking = said.reasoning?.join('');
    const blocks = thinking === undefined ? undefined : [{ type: 'thinking', thinking, signature: SIGNATURE }];
    // One block for each piece, and the signature in a last one, as BerriAI/litellm#29428 describes.
    const thoughts = [...(said.reasoning ?? []), ...(blocks === undefined ? [] : [''])].map((part) => {
      const block = { type: 'thinking', thinking: part, signature: part === '' ? SIGNATURE : '' };
      return {
        reasoning_content: part,
        thinking_blocks: [block],
        provider_specific_fields: { thinking_blocks: [block] },
      };
    });
    const deltas = [
      ...thoughts,
      ...(said.text ?? []).map((content, index) => ({ ...(index === 0 && { role: 'assistant' }), content })),
      ...callDeltas(calls),
    ];
    const usage = { ...USAGE, cache_creation_input_tokens: 0, cache_read_input_tokens: 4 };
    return {
      events: [
        ...deltas.map((delta) => chunk(model, delta, { finish_reason: undefined })),
        chunk(model, {}, { finish_reason: reasonOf(said) }),
        data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model, choices: [{ index: 0, delta: {} }], usage }),
        DONE,
      ],
      message: messageOf(said, calls, blocks === undefined ? {} : { thinking_blocks: blocks }),
    };
  },
};
