import { LRUCache } from 'lru-cache';

import type { Model, ModelCall } from '#libs/platform/model/index.ts';

const MAX_MODELS = 1_000;

type Call = Pick<ModelCall, 'model' | 'tools' | 'mayCallTools' | 'reasoningEffort' | 'thinkingBudget'>;

/**
 * What the answers of models begin with, as this process has seen it. The response of an answer that begins with text can
 * be posted while the model starts, and its first text is shown without waiting for the event store. A model is expected to
 * begin with text if its last answer did. It is not asked for anything that precedes text in the tree: tool calls and
 * reasoning. One that has reasoned without being asked is not expected to begin with text again.
 */
export class Openings {
  readonly #known = new LRUCache<string, 'text' | 'reasoning'>({ max: MAX_MODELS });

  isText(call: Call, model: Pick<Model, 'name'>): boolean {
    return !mayCallTools(call) && !isAskedToReason(call) && this.#known.get(call.model ?? model.name) === 'text';
  }

  /** @param answer what the model has written, also before a failure */
  learn(
    call: Call,
    model: Pick<Model, 'name'>,
    answer: { readonly hasText: boolean; readonly hasReasoning: boolean },
  ): void {
    const name = call.model ?? model.name;
    if (isAskedToReason(call) || this.#known.get(name) === 'reasoning') return;
    if (answer.hasReasoning) this.#known.set(name, 'reasoning');
    else if (answer.hasText) this.#known.set(name, 'text');
    // While an endpoint fails, channels show no empty responses.
    else if (!mayCallTools(call)) this.#known.delete(name);
  }
}

function mayCallTools({ tools, mayCallTools = true }: Call): boolean {
  return mayCallTools && tools.length > 0;
}

function isAskedToReason({ reasoningEffort, thinkingBudget }: Call): boolean {
  return reasoningEffort !== null || thinkingBudget !== null;
}
