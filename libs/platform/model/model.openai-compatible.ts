import type * as Ai from 'ai';

import { backoffMs, pause, unlessAborted } from '#libs/platform/lifecycle/index.ts';
import type { FetcherOptions } from '#libs/platform/fetch/index.ts';

import { endpointFetch } from './endpoint-fetch.ts';
import { Deadlines, type ModelLimits } from './model.deadlines.ts';
import { Failure, failureOf, type ModelLibrary } from './model.failures.ts';
import type {
  Model,
  ModelCall,
  ModelEnd,
  ModelFinish,
  ModelMessage,
  ModelPart,
  ModelTool,
  ModelUsage,
} from './model.ts';

/** Of a million tokens. */
export interface ModelPrices {
  /** Cached ones included. */
  readonly input: number;
  readonly output: number;
}

export interface ModelEndpointOptions extends Pick<FetcherOptions, 'metrics' | 'nameServers'> {
  /** `https://api.example.com/v1`: `/chat/completions` is appended. */
  readonly baseUrl: string;
  readonly apiKey?: string | undefined;
  /** The model of calls that name none. */
  readonly name: string;
  /** Of `name`: calls of other models have no cost. */
  readonly prices?: ModelPrices | null;
  readonly limits?: ModelLimits;
}

export interface ModelEndpoint extends Model {
  /** Ends all answers. */
  close(): Promise<void>;
}

const DEFAULTS: Required<ModelLimits> = {
  totalMs: 120_000,
  firstPartMs: 60_000,
  idleMs: 30_000,
  maxBytes: 32 * 1024 * 1024,
  maxAttempts: 4,
};

const PROVIDER = 'endpoint';

/** Any endpoint with the chat completions of the OpenAI API. The libraries are loaded with the first call. */
export function openAICompatibleModel(options: ModelEndpointOptions): ModelEndpoint {
  const { baseUrl, apiKey, name, prices = null } = options;
  const limits = { ...DEFAULTS, ...options.limits };
  const connection = endpointFetch(baseUrl, { maxBytes: limits.maxBytes, timeoutMs: limits.totalMs }, options);
  let library: Promise<ModelLibrary & { readonly model: (id: string) => Ai.LanguageModel }> | undefined;
  const load = async () => {
    const [ai, { createOpenAICompatible }] = await Promise.all([import('ai'), import('@ai-sdk/openai-compatible')]);
    // It would write warnings to the console.
    globalThis.AI_SDK_LOG_WARNINGS = false;
    const provider = createOpenAICompatible({
      name: PROVIDER,
      baseURL: baseUrl,
      includeUsage: true,
      fetch: connection.fetch,
      ...(apiKey !== undefined && { apiKey }),
    });
    return { ai, model: (id: string) => provider.chatModel(id) };
  };

  async function* stream(call: ModelCall, caller: AbortSignal): AsyncGenerator<ModelPart, void, void> {
    // Not within the limits of the endpoint: on a busy machine, libraries take seconds to load.
    const loaded = await (library ??= load());
    const { ai, model } = loaded;
    using deadlines = new Deadlines(limits, caller);
    for (let attempt = 1; ; attempt += 1) {
      let hasParts = false;
      try {
        const request = requestOf(ai, call, model(call.model ?? name));
        const { signal: abortSignal } = deadlines;
        // `streamText` would add steps, with tools that it runs: each part would cost twice as much.
        const answer = ai.experimental_streamLanguageModelCall({ ...request, abortSignal });
        for await (const part of partsOf((await unlessAborted(answer, abortSignal)).stream, deadlines)) {
          hasParts = true;
          const isPriced = part.type === 'finish' && (call.model ?? name) === name;
          yield isPriced ? { ...part, cost: costOf(part.usage, prices) } : part;
        }
        return;
      } catch (error) {
        const failure = failureOf(deadlines.signal.aborted ? deadlines.signal.reason : error, loaded);
        const waitMs = failure.retryAfterMs ?? backoffMs(attempt, { firstMs: 500 });
        const isWorthIt = failure.isRetryable && !hasParts && attempt < limits.maxAttempts;
        if (!isWorthIt || deadlines.signal.aborted || waitMs >= deadlines.remainingMs) {
          yield { type: 'error', ...failure.failure };
          return;
        }
        await pause(waitMs, deadlines.signal);
      }
    }
  }

  return { kind: 'openai-compatible', name, server: connection.server, stream, close: () => connection.close() };
}

/** The parts of an answer. @throws what ends it without a `finish` */
async function* partsOf(
  stream: AsyncIterable<Ai.LanguageModelStreamPart<Ai.ToolSet>>,
  deadlines: Deadlines,
): AsyncGenerator<ModelPart, void, void> {
  const parts = stream[Symbol.asyncIterator]();
  for (;;) {
    const { done, value: part } = await unlessAborted(parts.next(), deadlines.signal);
    if (done === true) throw new Failure('bad_response', 'the answer of the model has no end');
    const known = partOf(part);
    if (known === null) continue;
    deadlines.onPart();
    yield known;
    if (known.type === 'finish') return;
  }
}

/** @returns null for parts that say nothing to callers @throws the error of an answer */
function partOf(part: Ai.LanguageModelStreamPart<Ai.ToolSet>): ModelPart | null {
  switch (part.type) {
    case 'text-delta':
      return part.text === '' ? null : { type: 'text', text: part.text };
    case 'reasoning-delta':
      return part.text === '' ? null : { type: 'reasoning', text: part.text };
    case 'tool-call':
      return toolCallOf(part);
    case 'model-call-end':
      return endOf(part);
    case 'error':
      throw part.error;
    default:
      return null;
  }
}

function toolCallOf(part: Ai.TypedToolCall<Ai.ToolSet>): ModelPart {
  const { toolCallId: id, toolName: name, input } = part;
  if (part.invalid !== true) return { type: 'tool_call', call: { id, name, input: input as Record<string, unknown> } };
  const problem = String(part.error).includes('NoSuchTool') ? 'unknown_tool' : 'invalid_arguments';
  const text = typeof input === 'string' ? input : JSON.stringify(input);
  return { type: 'invalid_tool_call', id, name, input: text, problem };
}

const FINISHES: Readonly<Partial<Record<Ai.FinishReason, ModelFinish>>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
};

function endOf({
  finishReason,
  usage,
}: {
  readonly finishReason: Ai.FinishReason;
  readonly usage: Ai.LanguageModelUsage;
}): ModelEnd {
  return { type: 'finish', reason: FINISHES[finishReason] ?? 'other', usage: usageOf(usage), cost: null };
}

function usageOf({
  inputTokens,
  outputTokens,
  inputTokenDetails,
  outputTokenDetails,
}: Ai.LanguageModelUsage): ModelUsage {
  return {
    inputTokens: inputTokens ?? null,
    cachedInputTokens: inputTokenDetails.cacheReadTokens ?? null,
    outputTokens: outputTokens ?? null,
    reasoningTokens: outputTokenDetails.reasoningTokens ?? null,
  };
}

function costOf({ inputTokens, outputTokens }: ModelUsage, prices: ModelPrices | null): number | null {
  if (prices === null || inputTokens === null || outputTokens === null) return null;
  return (inputTokens * prices.input + outputTokens * prices.output) / 1_000_000;
}

function requestOf(ai: typeof Ai, call: ModelCall, model: Ai.LanguageModel) {
  const { instructions, messages, tools, temperature, reasoningEffort, thinkingBudget, traceparent, maxOutputTokens } =
    call;
  return {
    model,
    instructions,
    messages: messages.map(messageOf),
    ...(tools.length > 0 && { tools: Object.fromEntries(tools.map((tool) => [tool.name, toolOf(ai, tool)])) }),
    ...(temperature !== null && { temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(traceparent !== undefined && { headers: { traceparent } }),
    providerOptions: {
      [PROVIDER]: {
        ...(reasoningEffort !== null && { reasoningEffort }),
        ...(thinkingBudget !== null && { thinking_budget: thinkingBudget }),
      },
    },
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Without `execute`: calls are handed to the caller. */
function toolOf(ai: typeof Ai, { description, input }: ModelTool): Ai.Tool {
  if (!('jsonSchema' in input)) return ai.tool({ description, inputSchema: input });
  const validate = (value: unknown) =>
    isObject(value)
      ? { success: true as const, value }
      : { success: false as const, error: new TypeError('no object') };
  return ai.tool({
    description,
    inputSchema: ai.jsonSchema<Record<string, unknown>>({ ...input.jsonSchema }, { validate }),
  });
}

function messageOf(message: ModelMessage): Ai.ModelMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: message.text };
    case 'assistant':
      return {
        role: 'assistant',
        content: [
          ...(message.text === '' ? [] : [{ type: 'text' as const, text: message.text }]),
          ...message.toolCalls.map(({ id, name, input }) => ({
            type: 'tool-call' as const,
            toolCallId: id,
            toolName: name,
            input,
          })),
        ],
      };
    case 'tool':
      return {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: message.callId,
            toolName: message.name,
            output: { type: 'text', value: message.result },
          },
        ],
      };
  }
}
