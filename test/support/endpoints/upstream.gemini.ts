/** Gemini's generateContent: documentation "Function calling", "Thought signatures" and the reference of `Schema`. */
import { z } from 'zod';

import { data } from './endpoint.ts';
import { answerTo, refuseIf, roundsOf } from './upstream.ts';

/** As long as those of real thoughts. */
const signatureOf = (round: number): string => `EjQKMgFy${String(round).padStart(4, '0')}${'Cd9+/'.repeat(200)}==`;

const part = z.looseObject({
  text: z.string().optional(),
  functionCall: z.looseObject({ name: z.string(), args: z.record(z.string(), z.unknown()).optional() }).optional(),
  functionResponse: z.looseObject({ name: z.string(), response: z.record(z.string(), z.unknown()) }).optional(),
  function_call: z.looseObject({ name: z.string(), args: z.record(z.string(), z.unknown()).optional() }).optional(),
  function_response: z.looseObject({ name: z.string(), response: z.record(z.string(), z.unknown()) }).optional(),
  thoughtSignature: z.string().optional(),
});
type Part = z.infer<typeof part>;

const TYPES = z.string().regex(/^(string|number|integer|boolean|array|object|null)$/i);

/** The members that the reference of `Schema` has. */
const schema: z.ZodType = z.lazy(() =>
  z.strictObject({
    type: TYPES.optional(),
    format: z.string().optional(),
    title: z.string().optional(),
    description: z.string().optional(),
    nullable: z.boolean().optional(),
    enum: z.array(z.string()).optional(),
    items: schema.optional(),
    minItems: z.unknown().optional(),
    maxItems: z.unknown().optional(),
    properties: z.record(z.string(), schema).optional(),
    required: z.array(z.string()).optional(),
    minLength: z.unknown().optional(),
    maxLength: z.unknown().optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    pattern: z.string().optional(),
    anyOf: z.array(schema).optional(),
    propertyOrdering: z.array(z.string()).optional(),
    default: z.unknown().optional(),
  }),
);

const request = z.looseObject({
  contents: z.array(z.looseObject({ role: z.enum(['user', 'model']), parts: z.array(part).min(1) })).min(1),
  tools: z
    .array(
      z.looseObject({
        function_declarations: z.array(z.looseObject({ name: z.string(), parameters: schema.optional() })).min(1),
      }),
    )
    .optional(),
  toolConfig: z.looseObject({ functionCallingConfig: z.looseObject({ mode: z.string() }) }).optional(),
});

const callOf = (one: Part) => one.functionCall ?? one.function_call;
const isResponse = (one: Part): boolean => (one.functionResponse ?? one.function_response) !== undefined;

/** The events of an answer. @throws Refused, ZodError */
export function contentsOf(body: unknown): string[] {
  const { contents, tools, toolConfig } = request.parse(body);
  const first = contents[0]!;
  refuseIf(first.role !== 'user', 'Please ensure that multiturn requests begin with a user turn.');
  for (const [index, { parts }] of contents.entries()) {
    const before = contents[index - 1];
    const calls = parts.filter((one) => callOf(one) !== undefined);
    if (calls.length > 0) {
      refuseIf(
        before?.role !== 'user',
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      );
      const responses = contents[index + 1]?.parts.filter(isResponse) ?? [];
      refuseIf(
        responses.length !== calls.length,
        'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      );
    }
  }
  const begin = contents.findLastIndex(({ role, parts }) => role === 'user' && !parts.some(isResponse));
  const turn = contents.slice(begin);
  const steps = turn.filter(({ role, parts }) => role === 'model' && parts.some((one) => callOf(one) !== undefined));
  for (const [round, { parts }] of steps.entries()) {
    const call = parts.find((one) => callOf(one) !== undefined);
    refuseIf(
      call?.thoughtSignature !== signatureOf(round),
      `Function call is missing a thought_signature in functionCall parts. Additional data, function call \`default_api:${callOf(call!)?.name}\` , position ${round}.`,
    );
  }
  const asked = turn[0]!.parts.map(({ text = '' }) => text).join('');
  const mayCall = tools !== undefined && toolConfig?.functionCallingConfig.mode !== 'NONE';
  return answer(mayCall && steps.length < roundsOf(asked) ? steps.length : null, answerTo(asked));
}

/** Each call has a chunk of its own; the last chunk has the reason alone. Only the first call of a step is signed. */
function answer(round: number | null, said: readonly string[]): string[] {
  const parts: object[] =
    round === null
      ? said.map((text) => ({ text }))
      : ['opening hours', 'Bremen'].map((query, index) => ({
          functionCall: { name: 'search_knowledge_graph', args: { query } },
          ...(index === 0 && { thoughtSignature: signatureOf(round) }),
        }));
  const usageMetadata = { promptTokenCount: 12, candidatesTokenCount: 5, totalTokenCount: 17 };
  const of = { modelVersion: 'gemini-3-pro-preview', responseId: 'r1' };
  return [
    ...parts.map((one) => data({ candidates: [{ content: { role: 'model', parts: [one] }, index: 0 }], ...of })),
    data({
      candidates: [{ content: { role: 'model', parts: [{ text: '' }] }, finishReason: 'STOP', index: 0 }],
      usageMetadata,
      ...of,
    }),
  ];
}
