import type { Readable } from 'node:stream';

import { backoffMs, pause, within } from '#libs/platform/lifecycle/index.ts';

import { ChatAnswer } from './chat-answer.ts';
import { type ChatRequest, requestOf } from './chat-request.ts';
import { ChunkReader, release } from './chat-stream.ts';
import { Deadlines, type ModelLimits } from './model.deadlines.ts';
import { EndpointError, Failure, failureOf } from './model.failures.ts';
import {
  type ModelCall,
  type ModelEnd,
  type ModelFailure,
  type ModelPart,
  type ModelUsage,
  NO_USAGE,
} from './model.ts';
import { refusedBy } from './refusals.ts';
import { sourceOf } from './sent-message.ts';

/** Of a million tokens. */
export interface ModelPrices {
  /** Cached ones included. */
  readonly input: number;
  readonly output: number;
}

export interface ChatEndpoint {
  readonly baseUrl: string;
  /** The model of calls that name none. */
  readonly name: string;
  readonly limits: Required<ModelLimits>;
  readonly prices: ModelPrices | null;
  /** Names that each model has refused, from requests that were accepted without them. */
  readonly refused: {
    get(model: string): ReadonlySet<string> | undefined;
    set(model: string, omitted: ReadonlySet<string>): void;
  };
  /** The body of a successful response. @throws EndpointError, FetchError; the reason of `signal` */
  send(body: ChatRequest, traceparent: string | undefined, signal: AbortSignal): Promise<Readable>;
  withoutSecrets(text: string): string;
}

/** After the reason of an answer's end: for its usage. A connection that stays open says nothing more. */
const AFTER_FINISH_MS = 1_000;
/** Requests of one call that leave out what the endpoint has refused. */
const MAX_REFUSALS = 6;
const NOTHING: ReadonlySet<string> = new Set();

/** The requests of a call of a model, and the answer to the last of them. */
export class ChatExchange {
  readonly #endpoint: ChatEndpoint;
  readonly #call: ModelCall;
  readonly #model: string;
  readonly #source: string;
  #omitted: ReadonlySet<string>;
  #refusals = 0;
  #failures = 0;
  /** By attempts that have failed. */
  #spent = NO_USAGE;
  #hasText = false;
  #hasReasoning = false;

  constructor(endpoint: ChatEndpoint, call: ModelCall) {
    this.#endpoint = endpoint;
    this.#call = call;
    this.#model = call.model ?? endpoint.name;
    this.#source = sourceOf(endpoint.baseUrl, this.#model);
    this.#omitted = endpoint.refused.get(this.#model) ?? NOTHING;
  }

  /** Never throws. */
  async *parts(caller: AbortSignal): AsyncGenerator<ModelPart, void, void> {
    using deadlines = new Deadlines(this.#endpoint.limits, caller);
    for (;;) {
      const omitted = this.#omitted;
      const request = requestOf(this.#call, { model: this.#model, source: this.#source, omitted });
      const { tools, mayCallTools = true } = this.#call;
      const answer = new ChatAnswer(new Map(mayCallTools ? tools.map((tool) => [tool.name, tool]) : []));
      try {
        deadlines.onAttempt();
        yield* this.#attempt(request, answer, deadlines);
        return;
      } catch (error) {
        this.#spent = sumOf(this.#spent, answer.usage);
        const failure = await this.#failed(error, request, deadlines);
        if (failure !== null) {
          yield this.#error(failure);
          return;
        }
      }
      if (this.#hasReasoning) yield { type: 'restart' };
      this.#hasReasoning = false;
    }
  }

  async *#attempt(
    request: ChatRequest,
    answer: ChatAnswer,
    deadlines: Deadlines,
  ): AsyncGenerator<ModelPart, void, void> {
    const { send, refused } = this.#endpoint;
    const body = await send(request, this.#call.traceparent, deadlines.signal);
    let isComplete = false;
    try {
      for await (const parts of partsOf(body, answer, deadlines)) {
        for (const part of parts) {
          this.#hasText ||= part.type === 'text';
          this.#hasReasoning ||= part.type === 'reasoning';
          yield part;
        }
      }
      isComplete = true;
      if (this.#omitted.size > 0) refused.set(this.#model, this.#omitted);
      const end = answer.end(this.#source, this.#model);
      yield* answer.take();
      const usage = sumOf(this.#spent, end.usage);
      const omitted = [...[...this.#omitted].map(shownName), ...end.omitted];
      yield { ...end, usage, cost: this.#costOf(usage), omitted };
    } finally {
      if (isComplete) release(body);
      else body.destroy();
    }
  }

  /** @returns null for another attempt, after the time that it has to wait */
  async #failed(error: unknown, request: ChatRequest, deadlines: Deadlines): Promise<ModelFailure | null> {
    const { signal, remainingMs } = deadlines;
    const { failure, isRetryable, retryAfterMs } = failureOf(signal.aborted ? signal.reason : error);
    if (this.#hasText || signal.aborted) return failure;
    const names =
      error instanceof EndpointError ? namesIn(error, request).filter((one) => !this.#omitted.has(one)) : [];
    if (names.length > 0 && this.#refusals < MAX_REFUSALS) {
      this.#refusals += 1;
      this.#omitted = new Set([...this.#omitted, ...names]);
      return null;
    }
    this.#failures += 1;
    const waitMs = retryAfterMs ?? backoffMs(this.#failures, { firstMs: 500 });
    if (!isRetryable || this.#failures >= this.#endpoint.limits.maxAttempts || waitMs >= remainingMs) return failure;
    await pause(waitMs, signal);
    return null;
  }

  #error(failure: ModelFailure): ModelEnd {
    const detail = failure.detail && this.#endpoint.withoutSecrets(failure.detail);
    return { type: 'error', ...failure, detail, usage: this.#spent, cost: this.#costOf(this.#spent) };
  }

  #costOf({ inputTokens, outputTokens }: ModelUsage): number | null {
    const { prices, name } = this.#endpoint;
    if (prices === null || this.#model !== name || inputTokens === null || outputTokens === null) return null;
    return (inputTokens * prices.input + outputTokens * prices.output) / 1_000_000;
  }
}

/** Members that a further attempt leaves out. A refused key, or a full endpoint, says nothing of the request. */
function namesIn(error: EndpointError, request: ChatRequest): string[] {
  return [401, 408, 429].includes(error.status) ? [] : refusedBy(error, request);
}

/** The parts of an answer as they arrive. Ends when the answer is complete, whatever the connection does then. */
async function* partsOf(
  body: Readable,
  answer: ChatAnswer,
  deadlines: Deadlines,
): AsyncGenerator<readonly ModelPart[], void, void> {
  const reader = new ChunkReader();
  const bytes = body.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array, undefined>;
  for (;;) {
    let isDone = false;
    let failure: { readonly error: unknown } | null = null;
    try {
      const next = await (answer.hasFinish
        ? within(AFTER_FINISH_MS, bytes.next(), () => new NothingMore())
        : bytes.next());
      if (next.done !== true) deadlines.onBytes();
      const arrived = next.done === true ? reader.end() : reader.read(next.value);
      for (const chunk of arrived.chunks) answer.add(chunk);
      if (arrived.failure !== null) throw arrived.failure;
      isDone = arrived.isDone || next.done === true;
      if (isDone && !arrived.isDone && !answer.hasFinish && !answer.hasWholeCalls) {
        throw new Failure('bad_response', 'the answer of the model has no end');
      }
    } catch (error) {
      isDone = answer.hasFinish && !isCallers(deadlines.signal);
      if (!isDone) failure = { error };
    }
    // Parts that came before a failure belong to the answer.
    const parts = answer.take();
    if (parts.length > 0) yield parts;
    if (failure !== null) throw failure.error;
    if (!isDone) continue;
    // Takes its listeners from the body, which may end by itself.
    void bytes.return?.();
    return;
  }
}

/** An answer has its end, and its connection is silent. */
class NothingMore extends Error {
  override readonly name = 'NothingMore';
}

function isCallers({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason instanceof Failure && reason.reason === 'aborted';
}

/** `tool orders__find 1a2b3c4d` without its digest. */
function shownName(omitted: string): string {
  return omitted.startsWith('tool ') ? omitted.replace(/ [0-9a-f]{8}$/, '') : omitted;
}

function sumOf(one: ModelUsage, other: ModelUsage): ModelUsage {
  const sum = (a: number | null, b: number | null) => (a === null && b === null ? null : (a ?? 0) + (b ?? 0));
  return {
    inputTokens: sum(one.inputTokens, other.inputTokens),
    cachedInputTokens: sum(one.cachedInputTokens, other.cachedInputTokens),
    outputTokens: sum(one.outputTokens, other.outputTokens),
    reasoningTokens: sum(one.reasoningTokens, other.reasoningTokens),
  };
}
