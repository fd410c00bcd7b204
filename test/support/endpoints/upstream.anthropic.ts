/** Anthropic's Messages API: documentation "Messages", "Tool use", "Extended thinking" and "Streaming messages". */
import { z } from 'zod';

import { answerTo, refuseIf, roundsOf } from './upstream.ts';

const THOUGHT = 'The handbook may say it.';
/** As long as those of real thoughts. */
const SIGNATURE = `EqQBCgIYAhIM1gbcDa9GJwZA2b3h${'Ab3+/'.repeat(120)}==`;

const block = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string(), cache_control: z.unknown().optional() }),
  z.strictObject({ type: z.literal('thinking'), thinking: z.string(), signature: z.string() }),
  z.strictObject({
    type: z.literal('tool_use'),
    id: z.string().regex(/^[a-zA-Z0-9_-]+$/),
    name: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/),
    input: z.record(z.string(), z.unknown()),
  }),
  z.strictObject({
    type: z.literal('tool_result'),
    tool_use_id: z.string(),
    content: z.union([z.string(), z.array(z.unknown())]).optional(),
    is_error: z.boolean().optional(),
  }),
]);
type Block = z.infer<typeof block>;

const request = z.strictObject({
  model: z.string(),
  max_tokens: z.int().positive(),
  messages: z
    .array(z.strictObject({ role: z.enum(['user', 'assistant']), content: z.union([z.string(), z.array(block)]) }))
    .min(1),
  system: z.unknown().optional(),
  tools: z
    .array(
      z.looseObject({
        name: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/),
        input_schema: z.looseObject({ type: z.literal('object') }),
      }),
    )
    .min(1)
    .optional(),
  tool_choice: z.strictObject({ type: z.enum(['auto', 'none', 'any', 'tool']) }).optional(),
  temperature: z.number().min(0).max(1).optional(),
  thinking: z.strictObject({ type: z.literal('enabled'), budget_tokens: z.int().min(1_024) }).optional(),
  stream: z.literal(true),
  metadata: z.unknown().optional(),
});

/** The events of an answer. @throws Refused, ZodError */
export function messagesOf(body: unknown): string[] {
  const { messages, tools, thinking, temperature = 1, max_tokens: max, tool_choice: choice } = request.parse(body);
  const blocks = messages.map(({ role, content }) => ({
    role,
    content: typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content,
  }));
  refuseIf(blocks[0]?.role !== 'user', 'messages: first message must use the "user" role');
  for (const [index, { role, content }] of blocks.entries()) {
    refuseIf(role === blocks[index - 1]?.role, 'messages: roles must alternate between "user" and "assistant"');
    refuseIf(content.length === 0, `messages.${index}: all messages must have non-empty content`);
    const isBlank = content.some((one) => one.type === 'text' && one.text.trim() === '');
    refuseIf(isBlank, 'messages: text content blocks must be non-empty');
    checkResults(content, blocks[index - 1]?.content ?? [], index);
  }
  refuseIf(
    usesOf(blocks.at(-1)!.content).length > 0,
    'messages: `tool_use` ids were found without `tool_result` blocks',
  );
  const hasCalls = blocks.some(({ content }) => usesOf(content).length > 0);
  refuseIf(
    hasCalls && tools === undefined,
    'Requests which include `tool_use` or `tool_result` blocks must define tools.',
  );
  if (thinking !== undefined) {
    refuseIf(temperature !== 1, '`temperature` may only be set to 1 when thinking is enabled.');
    refuseIf(thinking.budget_tokens >= max, '`max_tokens` must be greater than `thinking.budget_tokens`.');
    checkThoughts(blocks);
  }
  const turn = blocks.slice(
    blocks.findLastIndex(({ role, content }) => role === 'user' && content[0]?.type === 'text'),
  );
  const done = turn.filter(({ content }) => usesOf(content).length > 0).length;
  const asked = turn[0]!.content.map((one) => (one.type === 'text' ? one.text : '')).join('');
  const mayCall = tools !== undefined && choice?.type !== 'none';
  return answer(mayCall && done < roundsOf(asked) ? done : null, answerTo(asked), thinking !== undefined);
}

const usesOf = (content: readonly Block[]) => content.filter((one) => one.type === 'tool_use');

function checkResults(content: readonly Block[], before: readonly Block[], index: number): void {
  const results = content.flatMap((one) => (one.type === 'tool_result' ? [one.tool_use_id] : []));
  const uses = usesOf(before).map(({ id }) => id);
  const missing = uses.filter((id) => !results.includes(id));
  refuseIf(
    missing.length > 0,
    `messages.${index - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}`,
  );
  const other = results.filter((id) => !uses.includes(id));
  refuseIf(
    other.length > 0,
    `messages.${index}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${other.join(', ')}`,
  );
}

/** In the last turn, calls follow the thought that they came with, unchanged. */
function checkThoughts(blocks: readonly { readonly role: string; readonly content: readonly Block[] }[]): void {
  const begin = blocks.findLastIndex(({ role, content }) => role === 'user' && content[0]?.type === 'text');
  for (const [index, { role, content }] of blocks.entries()) {
    if (index < begin || role !== 'assistant') continue;
    const [first] = content;
    refuseIf(
      first?.type !== 'thinking',
      `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first?.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block`,
    );
    for (const one of content) {
      const isOwn = one.type !== 'thinking' || (one.signature === SIGNATURE && one.thinking === THOUGHT);
      refuseIf(!isOwn, `messages.${index}.content.0: Invalid \`signature\` in \`thinking\` block`);
    }
  }
}

/** @param round number of the round of tools; null: the text */
function answer(round: number | null, text: readonly string[], thinks: boolean): string[] {
  const said: (readonly [start: object, deltas: readonly object[]])[] = [
    ...(thinks
      ? [
          [
            { type: 'thinking', thinking: '', signature: '' },
            [
              { type: 'thinking_delta', thinking: THOUGHT.slice(0, 9) },
              { type: 'thinking_delta', thinking: THOUGHT.slice(9) },
              { type: 'signature_delta', signature: SIGNATURE },
            ],
          ] as const,
        ]
      : []),
    ...(round === null
      ? [[{ type: 'text', text: '' }, text.map(textDelta)] as const]
      : ['opening hours', 'Bremen'].map((query, index) => {
          const id = `toolu_01${String(round * 2 + index).padStart(22, 'A')}`;
          const start = { type: 'tool_use', id, name: 'search_knowledge_graph', input: {} };
          const input = JSON.stringify({ query });
          return [start, ['', input.slice(0, 8), input.slice(8)].map(inputDelta)] as const;
        })),
  ];
  const start = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude', content: [], stop_reason: null };
  return [
    event('message_start', { message: { ...start, usage: { input_tokens: 12, output_tokens: 1 } } }),
    event('ping', {}),
    ...said.flatMap(([content_block, deltas], index) => [
      event('content_block_start', { index, content_block }),
      ...deltas.map((delta) => event('content_block_delta', { index, delta })),
      event('content_block_stop', { index }),
    ]),
    event('message_delta', {
      delta: { stop_reason: round === null ? 'end_turn' : 'tool_use', stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    event('message_stop', {}),
  ];
}

const textDelta = (text: string): object => ({ type: 'text_delta', text });
const inputDelta = (partial_json: string): object => ({ type: 'input_json_delta', partial_json });
const event = (type: string, data: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`;
