/** DeepSeek and Kimi: models whose reasoning comes back with their calls. */
import {
  type Call,
  callDeltas,
  callsOf,
  chunk,
  type Conversation,
  data,
  DONE,
  ending,
  type Family,
  messageOf,
  reasonOf,
  type Said,
  USAGE,
} from './endpoint.ts';
import { everyCallIsAnswered, everyResultHasACall, idsAreKept, memberIsKept, namesFit, parameter } from './rules.ts';

const error = (message: string) => ({
  status: 400,
  body: { error: { message, type: 'invalid_request_error', param: null, code: 'invalid_request_error' } },
});

/** Kimi reasons with every call. */
function reasoned(said: Said, calls: readonly Call[]) {
  const reasoning = said.reasoning?.join('') ?? (calls.length > 0 ? 'I should look it up.' : undefined);
  const parts = said.reasoning ?? (reasoning === undefined ? [] : [reasoning]);
  return { parts, message: messageOf(said, calls, reasoning === undefined ? {} : { reasoning_content: reasoning }) };
}

function deltasOf(said: Said, calls: readonly Call[], parts: readonly string[]): object[] {
  return [
    { role: 'assistant', content: null, reasoning_content: '' },
    ...parts.map((part) => ({ content: null, reasoning_content: part })),
    ...(said.text ?? []).map((content) => ({ content, reasoning_content: null })),
    ...callDeltas(calls),
  ];
}

const namesAreKept = namesFit(
  'nanbingxyz/5ire#403',
  (path) =>
    `Invalid '${path}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
);

export const deepseek: Family = {
  name: 'deepseek',
  rules: [
    memberIsKept(
      'reasoning_content',
      'DeepSeek documentation, "Thinking mode"; continuedev/continue#10193',
      (index) => `Missing \`reasoning_content\` field in the assistant message at message index ${index}.`,
    ),
    everyCallIsAnswered(
      'DeepSeek documentation, "Function calling"',
      () =>
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    ),
    everyResultHasACall(
      'FoundationAgents/OpenManus#744',
      () => "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    ),
    namesAreKept,
  ],
  refusal: error,
  // Comments keep the connection alive: DeepSeek documentation, "Rate limit".
  answer(said, conversation) {
    const calls = callsOf(said, conversation, (_name, n) => `call_00_${String(n).padStart(20, 'x')}`);
    const { parts, message } = reasoned(said, calls);
    const { model } = conversation;
    const events = deltasOf(said, calls, parts).map((delta) => chunk(model, delta));
    return {
      events: [': keep-alive\n\n', '\n', ...events, ': keep-alive\n\n', ...ending(model, reasonOf(said))],
      message,
    };
  },
};

export const kimi: Family = {
  name: 'kimi',
  // BerriAI/litellm-docs#559
  thoughtTokens: 623,
  rules: [
    parameter(
      'temperature',
      'NousResearch/hermes-agent#12566, Mai-with-u/MaiBot#1538',
      'invalid temperature: only 1 is allowed for this model',
      1,
    ),
    {
      says: 'reasoning_content is in each message with calls',
      source: 'bytedance/deer-flow#3043, continuedev/continue#11711',
      broken({ messages }) {
        const index = messages.findIndex(
          ({ tool_calls: calls = [], reasoning_content: reasoning }) =>
            calls.length > 0 && typeof reasoning !== 'string',
        );
        return index === -1
          ? null
          : `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${index}`;
      },
    },
    idsAreKept('vybestack/llxprt-code#713', (id) => `Invalid request: tool_call_id ${id} is not found`),
    everyResultHasACall(
      'earendil-works/pi#5884',
      () => "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
    ),
    everyCallIsAnswered(
      'Kimi documentation, "Tool calls"',
      () =>
        "an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'",
    ),
    {
      says: 'tool_choice is auto or none while the model thinks',
      source: 'bestruirui/octopus#251',
      broken: ({ tool_choice: choice = 'auto' }) =>
        choice === 'auto' || choice === 'none' ? null : "tool_choice 'specified' is incompatible with thinking enabled",
    },
    namesAreKept,
  ],
  // Without `param` and `code`.
  refusal: (message) => ({ status: 400, body: { error: { message, type: 'invalid_request_error' } } }),
  answer(said, conversation: Conversation) {
    const calls = callsOf(said, conversation, (name, n) => `functions.${name}:${n}`);
    const { parts, message } = reasoned(said, calls);
    const { model } = conversation;
    // Usage is a member of the last choice, not of the chunk.
    const choices = [{ index: 0, delta: {}, finish_reason: reasonOf(said), usage: USAGE }];
    return {
      events: [
        ...deltasOf(said, calls, parts).map((delta) => chunk(model, delta)),
        data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', model, choices }),
        DONE,
      ],
      message,
    };
  },
};
