import type { z } from 'zod';

/** What a model is asked for. */
export interface ModelCall {
  /** The system prompt. */
  readonly instructions: string;
  /** Oldest first; the last one is answered. See `boundedHistory`. */
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ModelTool[];
  /** Null: the configured model. */
  readonly model: string | null;
  /** Null: what the endpoint defaults to; the same for the members below. */
  readonly temperature: number | null;
  readonly reasoningEffort: 'low' | 'medium' | 'high' | null;
  /** Tokens that the model may think for; sent as `thinking_budget`. */
  readonly thinkingBudget: number | null;
  /** Tokens of the answer at most, reasoning included. Absent: what the endpoint defaults to. */
  readonly maxOutputTokens?: number;
  /** W3C Trace Context of the call; sent as a header. */
  readonly traceparent?: string | undefined;
}

export type ModelMessage =
  | { readonly role: 'user'; readonly text: string }
  | { readonly role: 'assistant'; readonly text: string; readonly toolCalls: readonly ModelToolCall[] }
  | { readonly role: 'tool'; readonly callId: string; readonly name: string; readonly result: string };

export interface ModelToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** Of the arguments. A JSON schema is of someone else: models are shown it, and calls are not checked against it. */
  readonly input: z.ZodType<Record<string, unknown>> | { readonly jsonSchema: Readonly<Record<string, unknown>> };
}

/** One part of an answer, in the order of the endpoint. */
export type ModelPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  | { readonly type: 'tool_call'; readonly call: ModelToolCall }
  /** A call of a tool that was not offered, or whose arguments do not fit it. `input`: as the model wrote it. */
  | {
      readonly type: 'invalid_tool_call';
      readonly id: string;
      readonly name: string;
      readonly input: string;
      readonly problem: 'unknown_tool' | 'invalid_arguments';
    }
  | ModelEnd;

export type ModelEnd =
  | {
      readonly type: 'finish';
      readonly reason: ModelFinish;
      readonly usage: ModelUsage;
      /** In the currency of the configured prices; null if there are none for the model, or the usage is not known. */
      readonly cost: number | null;
    }
  | ({ readonly type: 'error' } & ModelFailure);

/** `length`: the answer was cut at the model's limit. */
export type ModelFinish = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'other';

/** Tokens as the endpoint counts them; null if it did not report them. */
export interface ModelUsage {
  readonly inputTokens: number | null;
  readonly cachedInputTokens: number | null;
  readonly outputTokens: number | null;
  /** Part of `outputTokens`. */
  readonly reasoningTokens: number | null;
}

export interface ModelFailure {
  readonly reason:
    /** 401 or 403: the configured key. */
    | 'unauthorized'
    /** Another status below 500. */
    | 'refused'
    | 'rate_limited'
    /** No connection, or a status of 500 or above. */
    | 'unavailable'
    | 'timeout'
    /** The answer ended early. */
    | 'disconnected'
    | 'bad_response'
    | 'too_large'
    /** The caller's signal. */
    | 'aborted';
  /** A sentence for users, without a full stop and without text of the endpoint. */
  readonly message: string;
  /** What the endpoint said, for the log only. */
  readonly detail: string | null;
}

/**
 * A language model, or what answers in the place of one.
 *
 * Guarantees:
 * - `stream` gives one stream of parts that ends with exactly one `finish` or `error`, within the time limits of the
 *   model, and never throws. Parts before an `error` are valid: they may be kept.
 * - A request is repeated only as long as no part was received, so no text occurs twice.
 * - Memory for one answer is bounded. A consumer that stops reading, or aborts, ends the request.
 *
 * Omissions:
 * - It runs no tool, and does not check what text or arguments say: they are untrusted.
 * - Prompts are sent as they are: the caller bounds them.
 */
export interface Model {
  /** `extractive` quotes; it is no language model. */
  readonly kind: 'openai-compatible' | 'extractive';
  /** The configured model; shown to users. */
  readonly name: string;
  /** What answers; null within this process. */
  readonly server: { readonly host: string; readonly port: number } | null;
  stream(call: ModelCall, signal: AbortSignal): AsyncIterable<ModelPart>;
}
