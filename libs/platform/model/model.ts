import type { z } from 'zod';

import type { TokenUsage } from '#libs/kernel/token-usage.ts';

/** A call of a model. */
export interface ModelCall {
  /** The system prompt. */
  readonly instructions: string;
  /** Oldest first; the last one is answered. See `boundedHistory`. */
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ModelTool[];
  /** Default: true. False: the model reads which tools exist, as strict endpoints require, and may call none. */
  readonly mayCallTools?: boolean;
  /** Null: the configured model. */
  readonly model: string | null;
  /** Null: the endpoint's default; the same for the members below. */
  readonly temperature: number | null;
  readonly reasoningEffort: 'low' | 'medium' | 'high' | null;
  /** Tokens that the model may think for; sent as `thinking_budget`. */
  readonly thinkingBudget: number | null;
  /** Tokens of the answer at most, reasoning included. Absent: the endpoint's default. */
  readonly maxOutputTokens?: number;
  /** W3C Trace Context of the call; sent as a header. */
  readonly traceparent?: string | undefined;
}

export type ModelMessage =
  | { readonly role: 'user'; readonly text: string }
  | {
      readonly role: 'assistant';
      readonly text: string;
      readonly toolCalls: readonly ModelToolCall[];
      /**
       * The message as the `finish` of its answer gave it; its calls are in the order of `toolCalls`, which may have
       * fewer.
       */
      readonly sent?: SentMessage | null;
    }
  | { readonly role: 'tool'; readonly callId: string; readonly name: string; readonly result: string };

/**
 * A message as the endpoint sent it: ids of tool calls, reasoning, signatures, members that Parley does not know. It is
 * repeated unchanged to the endpoint and model that it came from, and to no other. JSON of at most `MAX_SENT_BYTES`.
 */
export interface SentMessage {
  /** Digest of the endpoint and the model. */
  readonly source: string;
  readonly message: Readonly<Record<string, unknown>>;
}

export interface ModelToolCall {
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /**
   * Of the arguments. A JSON schema comes from others: see `strictSchema` for what the model is shown of it. Calls are not
   * checked against it.
   */
  readonly input: z.ZodType<Record<string, unknown>> | { readonly jsonSchema: Readonly<Record<string, unknown>> };
}

/** A part of an answer, in the order of the endpoint; tool calls last. */
export type ModelPart =
  /** Well-formed Unicode, as all text of a model. The first one is not blank. */
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'reasoning'; readonly text: string }
  /** The answer failed before it had text, and begins again: its reasoning so far is void. */
  | { readonly type: 'restart' }
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
      /** The model that answered, by the endpoint's name for it; the requested one if the endpoint does not say. */
      readonly model: string;
      readonly usage: ModelUsage;
      /** In the currency of the configured prices; null if there are none for the model, or the usage is not known. */
      readonly cost: number | null;
      /** Null for a message that has nothing but its text. */
      readonly sent: SentMessage | null;
      /**
       * Names that were left out of the request because the endpoint refuses them, or of `sent` because of its size.
       */
      readonly omitted: readonly string[];
    }
  | ({ readonly type: 'error'; readonly usage: ModelUsage; readonly cost: number | null } & ModelFailure);

/**
 * `stop`, `length` (the answer was cut at the model's limit), `tool_calls` and `content_filter`, under whichever name the
 * endpoint has for them; else the endpoint's own word.
 */
export type ModelFinish = string;

/** Tokens as the endpoint counts them, failed attempts included; null if it did not report them. */
export type ModelUsage = Readonly<TokenUsage>;

export const NO_USAGE: ModelUsage = {
  inputTokens: null,
  cachedInputTokens: null,
  outputTokens: null,
  reasoningTokens: null,
};

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
  /** Words of the endpoint, without the configured key: for administrators and the log only. */
  readonly detail: string | null;
}

/**
 * A language model, or what answers in the place of one.
 *
 * Guarantees:
 * - `stream` gives one stream of parts that ends with exactly one `finish` or `error`, within the time limits of the
 *   model, and never throws. Parts before an `error` are valid: they may be kept.
 * - A request is repeated only as long as no text was received, so no text occurs twice.
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
  /** The server that answers; null within this process. */
  readonly server: { readonly host: string; readonly port: number } | null;
  stream(call: ModelCall, signal: AbortSignal): AsyncIterable<ModelPart>;
}
