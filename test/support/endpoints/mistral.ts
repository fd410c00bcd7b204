/** Mistral's own API. */
import { callsOf, type ChatRequest, chunk, data, DONE, type Family, messageOf, reasonOf, USAGE } from './endpoint.ts';
import { argumentsAreJson, callsIn, everyCallIsAnswered, noEmptyText } from './rules.ts';

const MEMBERS = new Set(
  (
    'model messages tools tool_choice parallel_tool_calls stream temperature top_p stop max_tokens random_seed ' +
    'response_format presence_penalty frequency_penalty n prediction prompt_mode metadata reasoning_effort min_tokens ' +
    'repetition_penalty top_k logprobs top_logprobs prompt_logprobs top_prompt_logprobs guardrails'
  ).split(' '),
);
/** Of messages, by role. */
const MEMBERS_OF: Readonly<Record<string, readonly string[]>> = {
  system: ['role', 'content'],
  user: ['role', 'content'],
  assistant: ['role', 'content', 'tool_calls', 'prefix'],
  tool: ['role', 'content', 'tool_call_id', 'name'],
};

/** Where a request has a member that the API does not have. */
function forbidden(request: ChatRequest): readonly (string | number)[] | null {
  const member = Object.keys(request).find((name) => !MEMBERS.has(name));
  if (member !== undefined) return ['body', member];
  if (request.tools?.length === 0) return ['body', 'tools'];
  for (const [index, message] of request.messages.entries()) {
    const name = Object.keys(message).find((one) => MEMBERS_OF[message.role]?.includes(one) !== true);
    if (name !== undefined) return ['body', 'messages', index, message.role, name];
  }
  return null;
}

export const mistral: Family = {
  name: 'mistral',
  rules: [
    {
      says: 'no members that the API does not have, also in messages; no empty list of tools',
      source:
        'mistralai/client-python, ChatCompletionStreamRequest; editor-code-assistant/eca#231, charmbracelet/crush#1590',
      broken: (request) => (forbidden(request) === null ? null : 'Extra inputs are not permitted'),
    },
    {
      says: 'ids of calls have nine letters and digits',
      source: 'anomalyco/opencode#1680, editor-code-assistant/eca#233',
      broken({ messages }) {
        const ids = [...callsIn(messages).map(({ id }) => id), ...messages.flatMap(({ tool_call_id: id }) => id ?? [])];
        const wrong = ids.find((id) => !/^[a-zA-Z0-9]{9}$/.test(id));
        return wrong === undefined ? null : `Tool call id was ${wrong} but must be a-z, A-Z, 0-9, with a length of 9.`;
      },
    },
    {
      says: 'no user right after the result of a tool',
      source: 'datapizza-labs/datapizza-ai#98, BerriAI/litellm#6323',
      broken: ({ messages }) =>
        messages.some(({ role }, index) => role === 'user' && messages[index - 1]?.role === 'tool')
          ? "Unexpected role 'user' after role 'tool'"
          : null,
    },
    {
      says: 'the last message is of a user or of a tool',
      source: 'Mistral documentation, "Chat completion"',
      broken: ({ messages }) =>
        ['user', 'tool'].includes(messages.at(-1)?.role ?? '')
          ? null
          : 'Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant',
    },
    everyCallIsAnswered(
      'Mistral documentation, "Function calling"',
      () => 'Not the same number of function calls and responses',
    ),
    argumentsAreJson('Mistral documentation, "Function calling"', (problem) => `Invalid arguments: ${problem}`),
    noEmptyText(
      'Mistral documentation, "Chat completion"',
      'Assistant message must have either content or tool_calls, but not none.',
    ),
  ],
  refusal(message, { says }, request) {
    const loc = forbidden(request);
    if (loc === null || !says.startsWith('no members')) {
      const code = message.startsWith('Tool call id') ? '3280' : '3230';
      return { status: 400, body: { object: 'error', message, type: 'invalid_function_call', param: null, code } };
    }
    // The message is an object, as of FastAPI.
    const detail = [{ type: 'extra_forbidden', loc, msg: message, input: null }];
    const body = { object: 'error', message: { detail }, type: 'invalid_request_error', param: null, code: null };
    return { status: 422, body };
  },
  // Content is a list where it has thoughts (BerriAI/litellm#16272); calls are whole; usage is in the last chunk.
  answer(said, conversation) {
    const { model } = conversation;
    const calls = callsOf(said, conversation, (_name, n) => `aB3dE${String(n).padStart(4, '0')}`);
    const thinking = (text: string) => [{ type: 'thinking', thinking: [{ type: 'text', text }] }];
    const deltas = [
      { role: 'assistant', content: '' },
      ...(said.reasoning ?? []).map((text) => ({ content: thinking(text) })),
      ...(said.text ?? []).map((content) => ({ content })),
      ...(calls.length === 0 ? [] : [{ tool_calls: calls.map((call, index) => ({ ...call, index })) }]),
    ];
    const choices = [{ index: 0, delta: { content: '' }, finish_reason: reasonOf(said) }];
    return {
      events: [
        ...deltas.map((delta) => chunk(model, delta)),
        data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model, usage: USAGE, choices }),
        DONE,
      ],
      message: messageOf(said, calls),
    };
  },
};
