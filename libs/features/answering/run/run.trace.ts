import { createHash } from 'node:crypto';

import type { TokenUsage } from '#libs/kernel/token-usage.ts';
import type { Model } from '#libs/platform/model/index.ts';
import {
  type EndedSpan,
  newSpanId,
  parseTraceparent,
  type Spans,
  type TraceContext,
  traceparentFor,
} from '#libs/platform/telemetry/index.ts';

import { totalCost, totalUsage } from './run.summary.ts';
import type { NextStep } from './run.next.ts';
import type { Run, RunEvent } from './run.ts';

type Attributes = EndedSpan['attributes'];

/** Attributes of a step in its span; `outcome` is null for a step that has none in this worker. */
type DescribesStep = (outcome: RunEvent | null) => Pick<EndedSpan, 'name' | 'kind' | 'attributes' | 'error'>;

/**
 * The spans of one run, with the GenAI conventions of OpenTelemetry: `invoke_agent` for the run, below it `chat` and
 * `execute_tool` for its steps. They continue the trace of the request that posted the message. Workers share the ids of
 * the run's span, which are derived; each attempt at a step is a span of its own. Prompts and answers are not exported.
 */
export class RunTrace {
  readonly #run: Run;
  readonly #spans: Spans | null;
  readonly #parent: TraceContext | null;
  readonly #own: TraceContext;
  /** For the posts of the run. Without an export of spans, the `traceparent` of the message. */
  readonly traceparent: string | undefined;

  /** @param traceparent of the events that led to the run */
  constructor(run: Run, traceparent: string | undefined, spans: Spans | null) {
    this.#run = run;
    this.#spans = spans;
    this.#parent = parseTraceparent(traceparent);
    const { traceId = hashOf(run.id).slice(16, 48), isSampled = true } = this.#parent ?? {};
    this.#own = { traceId, spanId: spanIdOf(run.id), isSampled };
    this.traceparent = spans === null ? traceparent : traceparentFor(this.#own);
  }

  /** Runs a step. `work` gets the `traceparent` for requests of the step. */
  async step(describe: DescribesStep, work: (traceparent: string | undefined) => Promise<RunEvent>): Promise<RunEvent> {
    if (this.#spans === null) return work(this.traceparent);
    const context = { ...this.#own, spanId: newSpanId() };
    const startedMs = Date.now();
    let outcome: RunEvent | null = null;
    try {
      outcome = await work(traceparentFor(context));
      return outcome;
    } finally {
      const { attributes, ...span } = describe(outcome);
      const { spanId: parentSpanId } = this.#own;
      this.#record({ ...span, context, parentSpanId, startedMs, endedMs: Date.now(), attributes });
    }
  }

  /** @param error why the run has failed; null for a completed one */
  ended(error: string | null): void {
    const { agentId, createdAt, endedAt, claim, messageId, asked } = this.#run;
    const name = claim?.agentName;
    this.#record({
      name: name === undefined ? 'invoke_agent' : `invoke_agent ${name}`,
      kind: 'internal',
      context: this.#own,
      parentSpanId: asked === null ? (this.#parent?.spanId ?? null) : spanIdOf(asked.askedBy.runId),
      startedMs: Date.parse(createdAt),
      endedMs: endedAt === null ? Date.now() : Date.parse(endedAt),
      attributes: {
        'gen_ai.operation.name': 'invoke_agent',
        'gen_ai.provider.name': claim === null ? null : providerOf(claim.model),
        'gen_ai.agent.id': agentId,
        'gen_ai.agent.name': name,
        'gen_ai.request.model': claim?.model.name,
        ...usageAttributes(totalUsage(this.#run), totalCost(this.#run)),
        'parley.message.id': messageId,
      },
      error,
    });
  }

  #record(span: EndedSpan): void {
    const { id, channelId, organizationId } = this.#run;
    const attributes = {
      ...span.attributes,
      'gen_ai.conversation.id': channelId,
      'parley.run.id': id,
      'parley.organization.id': organizationId,
    };
    this.#spans?.record({ ...span, attributes });
  }
}

function hashOf(runId: string): string {
  return createHash('sha256').update(runId).digest('hex');
}

function spanIdOf(runId: string): string {
  return hashOf(runId).slice(0, 16);
}

export function chatSpan(
  model: Pick<Model, 'kind' | 'name' | 'server'>,
  request: { readonly model: string | null; readonly temperature: number | null; readonly step: number },
): DescribesStep {
  const name = request.model ?? model.name;
  const about: Attributes = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': providerOf(model),
    'gen_ai.request.model': name,
    'gen_ai.request.temperature': request.temperature,
    'server.address': model.server?.host,
    'server.port': model.server?.port,
    'parley.run.step': request.step,
  };
  return (outcome) => {
    const finished = outcome?.type === 'ModelStepFinished.v1' ? outcome.data : null;
    return {
      name: `chat ${name}`,
      kind: model.server === null ? 'internal' : 'client',
      attributes: {
        ...about,
        ...(finished?.model !== undefined && { 'gen_ai.response.model': finished.model }),
        ...(finished && {
          'gen_ai.response.finish_reasons': [finished.finish],
          ...usageAttributes(finished.usage, finished.cost),
        }),
      },
      error: errorOf(outcome),
    };
  };
}

export function toolSpan({ call, step }: Extract<NextStep, { kind: 'tool' }>): DescribesStep {
  return (outcome) => ({
    name: `execute_tool ${call.name}`,
    kind: 'internal',
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': call.name,
      'gen_ai.tool.call.id': call.id,
      'gen_ai.tool.type': 'function',
      'parley.run.step': step,
    },
    error: errorOf(outcome),
  });
}

/** `interrupted`: the step has no outcome in this worker; it was cancelled, or is tried again. */
function errorOf(outcome: RunEvent | null): string | null {
  switch (outcome?.type) {
    case undefined:
      return 'interrupted';
    case 'RunFailed.v1':
      return outcome.data.reason;
    case 'ToolStepFinished.v1':
      return outcome.data.status === 'success' ? null : outcome.data.status;
    default:
      return null;
  }
}

/** By the protocol that the endpoint speaks: the model behind it may be of another maker. */
function providerOf({ kind }: { readonly kind: string }): string {
  return kind === 'extractive' ? 'parley' : 'openai';
}

function usageAttributes(
  { inputTokens, cachedInputTokens, outputTokens, reasoningTokens }: TokenUsage,
  cost: number | null,
): Attributes {
  return {
    // No convention names a cost; collectors such as Langfuse read this name.
    'gen_ai.usage.cost': cost,
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.cache_read.input_tokens': cachedInputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
    'gen_ai.usage.reasoning.output_tokens': reasoningTokens,
  };
}
