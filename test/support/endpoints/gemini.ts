/** Gemini's OpenAI compatibility. */
import { callsOf, chunk, ending, type Family, messageOf } from './endpoint.ts';
import { argumentsAreJson, callsIn, everyCallIsAnswered, pairs, schemas } from './rules.ts';

export const gemini: Family = {
  name: 'gemini',
  rules: [
    {
      says: 'the first call of each step of the turn comes back with its thought signature',
      source: 'Gemini documentation, "Thought signatures"; securo-finance/securo#884',
      broken(request, conversation) {
        for (const [message, wanted] of pairs(request, conversation)) {
          const [call, given] = [message, wanted].map(({ tool_calls: [first] = [] }) => first);
          if (JSON.stringify(call?.['extra_content']) === JSON.stringify(given?.['extra_content'])) continue;
          return `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${call?.function.name}\` , position ${request.messages.indexOf(message)}.`;
        }
        return null;
      },
    },
    everyCallIsAnswered(
      'google-gemini/gemini-cli#4217',
      () =>
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
    ),
    {
      says: 'calls come right after a user or after results',
      source: 'google-gemini/gemini-cli#26486',
      broken: ({ messages }) =>
        messages.some(
          (one, index) => callsIn([one]).length > 0 && !['user', 'tool'].includes(messages[index - 1]?.role ?? ''),
        )
          ? 'Please ensure that function call turn comes immediately after a user turn or after a function response turn.'
          : null,
    },
    argumentsAreJson(
      'Gemini documentation, "Function calling": args is a Struct',
      (problem) => `Invalid JSON: ${problem}`,
    ),
    {
      says: 'a schema has one type, a string; objects have properties; only objects have required and properties',
      source: 'MarkusPfundstein/mcp-obsidian#21, anomalyco/opencode#11889, github/copilot-cli#4623',
      broken(request) {
        for (const { path, schema } of schemas(request)) {
          const { type, properties, required } = schema;
          const at = `* GenerateContentRequest.${path}`;
          if (Array.isArray(type)) return `${at}.type: Proto field is not repeating, cannot start list.`;
          const isRoot = path.endsWith('.parameters');
          if (type === 'object' && !isRoot && Object.keys(properties ?? {}).length === 0)
            return `${at}.properties: should be non-empty for OBJECT type`;
          if (type !== 'object' && (properties !== undefined || required !== undefined))
            return `${at}.${properties === undefined ? 'required' : 'properties'}: only allowed for OBJECT type`;
          if (type === 'array' && schema['items'] === undefined) return `${at}.items: missing field.`;
        }
        return null;
      },
    },
    {
      says: 'values of an enum are strings',
      source: 'anomalyco/opencode#2687',
      broken(request) {
        const wrong = schemas(request).find(({ schema: { enum: values } }) =>
          Array.isArray(values) ? values.some((value) => typeof value !== 'string') : false,
        );
        return wrong === undefined ? null : `Invalid value at '${wrong.path}.enum[0]' (TYPE_STRING)`;
      },
    },
    {
      says: 'names in required are properties',
      source: 'anomalyco/opencode#11889',
      broken(request) {
        const wrong = schemas(request).find(({ schema: { required, properties = {} } }) =>
          Array.isArray(required) ? required.some((name) => !Object.hasOwn(properties as object, String(name))) : false,
        );
        return wrong === undefined
          ? null
          : `* GenerateContentRequest.${wrong.path}.required[0]: property is not defined`;
      },
    },
  ],
  // The body is a list: TokenRhythm/opensquilla#225.
  refusal: (message) => ({ status: 400, body: [{ error: { code: 400, message, status: 'INVALID_ARGUMENT' } }] }),
  // Each call is whole, in a chunk of its own, without an index, and the reason is `stop`: noho/dayu-agent#82,
  // googleapis/python-genai#2868. Only the first call of a step is signed.
  answer(said, conversation) {
    const { model } = conversation;
    const plain = callsOf(said, conversation, (_name, n) => `function-call-${9_000_000 + n}`);
    const calls = plain.map((call, index) =>
      index > 0 ? call : { ...call, extra_content: { google: { thought_signature: `EjQKMg${call.id}` } } },
    );
    const deltas = [
      ...(said.text ?? []).map((content) => ({ role: 'assistant', content })),
      ...calls.map((call) => ({ role: 'assistant', tool_calls: [call] })),
    ];
    return {
      events: [...deltas.map((delta) => chunk(model, delta)), ...ending(model, said.finish ?? 'stop')],
      message: messageOf(said, calls),
    };
  },
};
