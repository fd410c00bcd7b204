/** What the tests of models share: a scripted endpoint, a model that calls it, and the parts of its answers. */
import { afterEach, beforeEach } from 'vitest';
import { z } from 'zod';

import {
  type ModelCall,
  type ModelEndpoint,
  type ModelLimits,
  type ModelPart,
  type ModelPrices,
  openAICompatibleModel,
} from '#libs/platform/model/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { type Answer, delta, type ModelServer, startModelServer } from '#test/support/model-server.ts';

export const search = { name: 'search', description: 'Searches.', input: z.object({ query: z.string() }) };
export const now = { name: 'now', description: 'Tells the time.', input: z.object({}) };

export const CALL: ModelCall = {
  instructions: 'Answer briefly.',
  messages: [{ role: 'user', text: 'Who are you?' }],
  tools: [search, now],
  model: null,
  temperature: null,
  reasoningEffort: null,
  thinkingBudget: null,
};

/** Starts an endpoint for each test of the file. */
export function useScriptedEndpoint() {
  let server: ModelServer;
  let models: ModelEndpoint[];

  beforeEach(async () => {
    server = await startModelServer();
    models = [];
  });
  afterEach(async () => {
    await Promise.all(models.map((model) => model.close()));
    await server.stop();
  });

  function model(
    limits: ModelLimits = {},
    options: { readonly baseUrl?: string; readonly prices?: ModelPrices } = {},
  ): ModelEndpoint {
    const created = openAICompatibleModel({
      baseUrl: server.baseUrl,
      apiKey: 'secret-key',
      name: 'small',
      metrics: createMetrics({ processMetrics: false }),
      // Far below the time that a test has, far above what an answer of the server takes.
      limits: { totalMs: 20_000, firstPartMs: 10_000, idleMs: 10_000, ...limits },
      ...options,
    });
    models.push(created);
    return created;
  }

  async function partsOf(answer: Answer | readonly Answer[], call: Partial<ModelCall> = {}, one = model()) {
    server.script(...[answer].flat());
    return Array.fromAsync(one.stream({ ...CALL, ...call }, new AbortController().signal));
  }

  return { model, partsOf, server: () => server };
}

export function textOf(parts: readonly ModelPart[], type: 'text' | 'reasoning' = 'text'): string {
  return parts.map((part) => (part.type === type ? part.text : '')).join('');
}

export function callsOf(parts: readonly ModelPart[]) {
  return parts.flatMap((part) => {
    if (part.type === 'tool_call') return [[part.call.name, part.call.input]];
    return part.type === 'invalid_tool_call' ? [[part.name, part.problem]] : [];
  });
}

export function endOf(parts: readonly ModelPart[]) {
  const last = parts.at(-1);
  if (last?.type !== 'finish') throw new Error(`no finish: ${JSON.stringify(last)}`);
  return last;
}

export const so = delta({ content: 'So' });
export const stop = delta({}, 'stop');
export const body = (message: object, more: object = {}): Answer => {
  const json = { model: 'small-2026', choices: [{ index: 0, message, finish_reason: 'stop' }], ...more };
  return (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json));
};
/** A part of a streamed answer with a part of a tool call. */
export const call = (members: object): object => delta({ tool_calls: [members] });
