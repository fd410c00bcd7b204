import { totalUsage } from './run.summary.ts';
import { answerText, type ModelStep, type Run, type Step, type ToolCall } from './run.ts';

/** The next step, which follows from the steps that have finished. */
export type NextStep =
  | { readonly kind: 'model'; readonly step: number; readonly mayCallTools: boolean }
  | { readonly kind: 'tool'; readonly step: number; readonly call: ToolCall }
  | { readonly kind: 'complete' }
  | { readonly kind: 'fail'; readonly reason: string; readonly message: string };

/**
 * Limits of a run. Once it has reached one of them, the model is called a last time, without tools, so that it
 * answers. The time of a run is limited by its reactor, and that of a call by the model.
 */
export const MOST = {
  modelCalls: 8,
  toolCalls: 40,
  /** As the endpoint counts them. */
  tokens: 1_000_000,
  /** Of the outcomes of all steps, as JSON. */
  characters: 4_000_000,
};
/** Limit of the tool calls that Parley makes for one answer. The next request tells the model which calls were not made. */
export const MAX_TOOL_CALLS = 8;

export function nextStep(run: Run): NextStep {
  const step = run.steps.length + 1;
  const last = run.steps.findLast((one) => one.kind === 'model');
  if (last === undefined) return { kind: 'model', step, mayCallTools: true };
  const done = new Set(run.steps.flatMap((one) => (one.kind === 'tool' ? [one.callId] : [])));
  const calls = last.toolCalls.filter(isOffered);
  const call = calls.find(({ id }) => !done.has(id));
  if (call !== undefined && !isUsedUp(run)) return { kind: 'tool', step, call };
  if (last.toolCalls.length === 0 || last.isLast === true || countOf(run, 'model') >= MOST.modelCalls) {
    return endOf(run, last);
  }
  return { kind: 'model', step, mayCallTools: countOf(run, 'model') + 1 < MOST.modelCalls && !isUsedUp(run) };
}

function isOffered(call: ToolCall): boolean {
  return call.isOffered !== false;
}

function countOf({ steps }: Pick<Run, 'steps'>, kind: Step['kind']): number {
  return steps.filter((one) => one.kind === kind).length;
}

function isUsedUp(run: Run): boolean {
  const { inputTokens, outputTokens } = totalUsage(run);
  return (
    countOf(run, 'tool') >= MOST.toolCalls ||
    (inputTokens ?? 0) + (outputTokens ?? 0) >= MOST.tokens ||
    run.size >= MOST.characters
  );
}

/** A run ends with an answer, or with the reason why there is none. */
function endOf(run: Run, { text, finish, toolCalls }: ModelStep): NextStep {
  const isBlank = text.trim() === '';
  if (isBlank && finish === 'content_filter') {
    return { kind: 'fail', reason: 'model_content_filter', message: 'the filter of the model withheld the answer' };
  }
  if (answerText(run).trim() !== '') return { kind: 'complete' };
  if (finish === 'length') {
    return { kind: 'fail', reason: 'model_length', message: 'the model reached its limit before it wrote an answer' };
  }
  if (toolCalls.length > 0) {
    const message = 'the run has used up what it may use, and the model called a tool instead of answering';
    return { kind: 'fail', reason: 'limit_reached', message };
  }
  // A word of the endpoint, which a message may name if it is one.
  const why = finish !== 'stop' && /^\w{1,40}$/.test(finish) ? ` (${finish})` : '';
  return { kind: 'fail', reason: 'model_no_answer', message: `the answer has no text${why}` };
}
