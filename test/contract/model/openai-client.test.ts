/** Streams of answers as the official client of OpenAI reads them, and as Parley does. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

import fc from 'fast-check';
import { OpenAI } from 'openai';
import { afterAll, beforeAll, expect, it } from 'vitest';

import { type ModelEndpoint, type ModelPart, openAICompatibleModel } from '#libs/platform/model/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { anthropic } from '#test/support/endpoints/anthropic.ts';
import { vllm } from '#test/support/endpoints/chat-templates.ts';
import { deepseek, kimi } from '#test/support/endpoints/deepseek-kimi.ts';
import { beginEvents, type Said } from '#test/support/endpoints/endpoint.ts';
import { openai } from '#test/support/endpoints/openai.ts';
import { openrouter } from '#test/support/endpoints/openrouter.ts';
import { rounds } from '#test/support/rounds.ts';

/** Those whose streams the official client accepts. */
const FAMILIES = [openai, anthropic, deepseek, kimi, vllm, openrouter];
const TOOL = 'search_knowledge_graph';

/** A body in packets. */
type Packets = readonly Buffer[];

let server: Server;
let client: OpenAI;
let model: ModelEndpoint;
/** By the name of the model. */
const bodies = new Map<string, Packets>();

beforeAll(async () => {
  server = createServer((request, response) => {
    void json(request).then(async (body) => {
      beginEvents(response);
      response.socket?.setNoDelay();
      for (const packet of bodies.get((body as { model: string }).model) ?? []) {
        await new Promise((resolve) => response.write(packet, resolve));
      }
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  client = new OpenAI({ baseURL: baseUrl, apiKey: 'none', maxRetries: 0 });
  model = openAICompatibleModel({ baseUrl, name: 'none', metrics: createMetrics({ processMetrics: false }) });
});
afterAll(async () => {
  await model?.close();
  server?.closeAllConnections();
  server?.close();
});

interface Read {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly input: unknown }[];
  readonly finish: string;
  readonly tokens: number | null;
}

async function readByOpenAi(name: string): Promise<Read> {
  const stream = client.chat.completions.stream({ model: name, messages: [{ role: 'user', content: 'Hi' }] });
  const { choices, usage } = await stream.finalChatCompletion();
  const { message, finish_reason: finish } = choices[0]!;
  const calls = (message.tool_calls ?? []).map((call) =>
    call.type === 'function'
      ? { name: call.function.name, input: JSON.parse(call.function.arguments) as unknown }
      : call,
  );
  return { text: message.content ?? '', calls: calls as Read['calls'], finish, tokens: usage?.prompt_tokens ?? null };
}

async function readByParley(name: string): Promise<Read & { readonly reasoning: string }> {
  const parts: ModelPart[] = [];
  const tools = [{ name: TOOL, description: 'Searches', input: { jsonSchema: { type: 'object' } } }];
  const asked = { instructions: '', messages: [{ role: 'user' as const, text: 'Hi' }], tools, model: name };
  const call = { ...asked, temperature: null, reasoningEffort: null, thinkingBudget: null };
  for await (const part of model.stream(call, new AbortController().signal)) parts.push(part);
  const textOf = (type: 'text' | 'reasoning'): string =>
    parts.map((part) => (part.type === type ? part.text : '')).join('');
  const end = parts.at(-1);
  if (end?.type !== 'finish') throw new Error(`the answer has no end: ${JSON.stringify(end)}`);
  return {
    text: textOf('text'),
    reasoning: textOf('reasoning'),
    calls: parts.flatMap((part) =>
      part.type === 'tool_call' ? [{ name: part.call.name, input: part.call.input }] : [],
    ),
    finish: end.reason,
    tokens: end.usage.inputTokens,
  };
}

const pieces = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), { maxLength: 6 });
const call = fc
  .record({ query: fc.string({ unit: 'grapheme', maxLength: 30 }) })
  .map((input) => ({ name: TOOL, arguments: JSON.stringify(input) }));
const said = fc.record({ text: pieces, reasoning: pieces, calls: fc.array(call, { maxLength: 3 }) });
const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 });

/** Begins with words: blanks and tags of thoughts at the beginning are Parley's own matter. */
const spoken = ({ text, reasoning, calls }: Required<Pick<Said, 'text' | 'reasoning' | 'calls'>>): Said => ({
  text: ['So ', ...text],
  ...(reasoning.length > 0 && { reasoning: ['Hm ', ...reasoning] }),
  ...(calls.length > 0 && { calls }),
});

function packetsOf(events: readonly string[], at: readonly number[]): Packets {
  const bytes = Buffer.from(events.join(''));
  const ends = [...new Set(at.map((share) => Math.round(share * bytes.length))), bytes.length].toSorted(
    (a, b) => a - b,
  );
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end)).filter(({ length }) => length > 0);
}

it('a stream is read as the official client reads it, however it is cut into packets', async () => {
  let number = 0;
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...FAMILIES.keys()), said, cuts, async (index, words, at) => {
      const family = FAMILIES[index]!;
      number += 1;
      const name = `${family.name}/${number}`;
      const answer = spoken(words);
      bodies.set(name, packetsOf(family.answer(answer, { model: name, given: [] }).events, at));
      const [theirs, { reasoning, ...ours }] = await Promise.all([readByOpenAi(name), readByParley(name)]);
      bodies.delete(name);
      // Kimi sends the usage where the official client does not look for it.
      expect({ ...ours, ...(family === kimi && { tokens: null }) }).toEqual(theirs);
      // OpenAI hides what its models think.
      expect(reasoning).toContain(family === openai ? '' : (answer.reasoning?.join('') ?? ''));
    }),
    { numRuns: rounds(60) },
  );
});
