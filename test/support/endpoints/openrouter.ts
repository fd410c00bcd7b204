/** OpenRouter, in front of the endpoints of others. */
import { callDeltas, callsOf, data, DONE, type Family, messageOf, reasonOf, USAGE } from './endpoint.ts';
import { everyCallIsAnswered, everyResultHasACall, memberIsKept, namesFit } from './rules.ts';

const PROCESSING = ': OPENROUTER PROCESSING\n\n';

export const openrouter: Family = {
  name: 'openrouter',
  rules: [
    memberIsKept(
      'reasoning_details',
      'OpenRouter documentation, "Reasoning tokens"; agno-agi/agno#5802, home-assistant/core#159812',
      () => 'Invalid `signature` in `thinking` block',
    ),
    everyCallIsAnswered(
      'CopilotKit/CopilotKit#7277',
      (ids) => `No tool output found for function call ${ids.join(', ')}.`,
    ),
    everyResultHasACall(
      'XSpoonAi/spoon-core#267',
      () => "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
    ),
    namesFit('langgenius/dify#22867', (path) => `Invalid '${path}': string does not match pattern.`),
  ],
  // The cause is in the metadata: OnesoftQwQ/opencode-go-copilot#1.
  refusal: (message) => ({
    status: 400,
    body: {
      error: {
        message: 'Provider returned error',
        code: 400,
        metadata: { raw: JSON.stringify({ type: 'error', error: { message } }), provider_name: 'Anthropic' },
      },
      user_id: 'user_1',
    },
  }),
  answer(said, conversation) {
    const { model } = conversation;
    const calls = callsOf(said, conversation, (_name, n) => `toolu_bdrk_${String(n).padStart(20, '0')}`);
    const base = { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0 };
    const text = said.reasoning?.join('');
    const details = text === undefined ? undefined : [{ ...base, text, signature: 'Et8BCmUIDxgC' }];
    // A thought arrives in pieces of one index, its signature last without a text: agno-agi/agno#5802.
    const thoughts =
      details === undefined
        ? []
        : [
            ...said.reasoning!.map((part) => ({
              content: '',
              reasoning: part,
              reasoning_details: [{ ...base, text: part }],
            })),
            { content: '', reasoning: null, reasoning_details: [{ ...base, signature: 'Et8BCmUIDxgC' }] },
          ];
    const deltas = [
      { role: 'assistant', content: '' },
      ...thoughts,
      ...(said.text ?? []).map((content) => ({ role: 'assistant', content, reasoning: null, reasoning_details: [] })),
      ...callDeltas(calls).map((delta) => ({ role: 'assistant', content: null, ...delta })),
    ];
    const event = (delta: object, reason: string | null, more: object = {}): string => {
      const choices = [
        { index: 0, delta, finish_reason: reason, native_finish_reason: reason && `native_${reason}`, logprobs: null },
      ];
      const of = { id: 'gen-1', provider: 'Anthropic', model, object: 'chat.completion.chunk', created: 1 };
      return data({ ...of, choices, ...more });
    };
    const usage = { ...USAGE, cost: 0.0001, is_byok: false };
    return {
      events: [
        PROCESSING,
        PROCESSING,
        ...deltas.map((delta) => event(delta, null)),
        PROCESSING,
        event({ role: 'assistant', content: '' }, reasonOf(said)),
        // Usage comes with a choice that repeats the end.
        event({ role: 'assistant', content: '' }, null, { usage }),
        DONE,
      ],
      message: messageOf(said, calls, details === undefined ? {} : { reasoning_details: details }),
    };
  },
};
