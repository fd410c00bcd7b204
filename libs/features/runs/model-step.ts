import { streamRevision } from '#libs/kernel/event.ts';
import { pause } from '#libs/platform/lifecycle/index.ts';
import type { Model, ModelMessage, ModelPart, ModelTool } from '#libs/platform/model/index.ts';
import { streamName } from '#libs/platform/readmodel/index.ts';

import { TagEscaper, escapedTags } from './html.ts';
import { endLateResponse, metadataOf } from './response.ts';
import { ResponseDraft } from './response-draft.ts';
import { ChannelRefusal } from './run.channel.ts';
import type { MissedServer } from './run.mcp.ts';
import { callOfModel } from './run.prompt.ts';
import { failed } from './run.parts.ts';
import type { RunParts, StepOfRun } from './run.parts.ts';
import { answerText, MAX_TOOL_CALLS, RUN } from './run.ts';
import type { Run, RunEvent, ToolCall } from './run.ts';

/** Of the text and of the reasoning of one step: an interaction holds no more. */
const MAX_CHARS = 100_000;
/** Between two looks at whether the run was cancelled, or continued by another worker. */
const WATCH_MS = 1_000;
/** Of the arguments of a call that is not run. */
const MAX_SHOWN_INPUT = 500;

interface ModelParts extends Pick<RunParts, 'store' | 'maxTokens' | 'log' | 'openings'> {
  readonly model: Model;
  readonly conversation: readonly ModelMessage[];
  readonly tools: readonly ModelTool[];
  readonly missed: readonly MissedServer[];
  /** For the request. */
  readonly traceparent: string | undefined;
}

/** Another worker has continued the run, or it was cancelled: what this step comes to does not count. */
class Overtaken extends Error {
  override readonly name = 'Overtaken';
}

/**
 * Calls the model once. Its text is streamed into the response, which is posted with its first words, or while the model
 * starts if nothing else of the step is expected to precede it.
 */
export async function runModelStep(one: StepOfRun, parts: ModelParts, step: number): Promise<RunEvent> {
  const { process } = one;
  let { run } = one;
  if (run.started?.step !== step) {
    const started = { type: 'StepStarted.v1', data: { step, callId: null } } as const;
    const servers = [...parts.missed];
    const missed = servers.length === 0 ? [] : [{ type: 'ToolServersMissed.v1', data: { step, servers } } as const];
    run = (await process.recordIntent(started, ...missed)) ?? run;
  }
  const call = callOfModel({ ...parts, agent: one.agent, run });
  const answer = new AnswerOfStep({ ...one, run }, parts.model, step);
  if (parts.openings.isText(call, parts.model)) answer.begin();
  const over = new AbortController();
  const signal = AbortSignal.any([process.signal, over.signal]);
  const watch = watched(parts.store, run, signal).then((isOvertaken) => isOvertaken && over.abort(new Overtaken()));
  try {
    const outcome = await outcomeOf(answer, parts.model.stream(call, signal), (failure) => {
      signal.throwIfAborted();
      const { reason, detail } = failure;
      if (detail !== null) parts.log.warn({ run: run.id, reason, detail }, 'a model call failed');
    });
    // The end of a run that was cancelled between two looks may have been shown before the response was posted.
    if (answer.isShown) await endLateResponse(one, parts.store);
    return outcome;
  } catch (error) {
    await answer.posted();
    if (over.signal.aborted || answer.isShown) await endLateResponse(one, parts.store);
    throw error;
  } finally {
    parts.openings.learn(call, parts.model, answer);
    over.abort();
    await watch;
  }
}

type ModelFailure = Extract<ModelPart, { type: 'error' }>;

async function outcomeOf(
  answer: AnswerOfStep,
  stream: AsyncIterable<ModelPart>,
  onFailure: (failure: ModelFailure) => void,
): Promise<RunEvent> {
  for await (const part of stream) {
    if (part.type === 'error') {
      onFailure(part);
      await answer.settled();
      return failed(`model_${part.reason}`, part.message);
    }
    if (part.type === 'finish') return answer.finished(part);
    await answer.add(part);
    if (answer.isTooLong) return answer.finished({ type: 'finish', reason: 'length', usage: NO_USAGE, cost: null });
  }
  throw new TypeError('a stream of a model has no end');
}

const NO_USAGE = { inputTokens: null, cachedInputTokens: null, outputTokens: null, reasoningTokens: null };

/** Resolves with true once the stream of the run has an event that this worker did not append; with false at the end. */
async function watched(store: RunParts['store'], { id, changedRevision }: Run, signal: AbortSignal): Promise<boolean> {
  const from = streamRevision(changedRevision + 1);
  while (!signal.aborted) {
    await pause(WATCH_MS, signal);
    if (signal.aborted) break;
    try {
      for await (const _event of store.readStream(streamName(RUN, id), { from, limit: 1 })) return true;
    } catch {
      // The store is unavailable: the step continues, and appends its outcome once the store answers again.
    }
  }
  return false;
}

type CallPart = Extract<ModelPart, { type: 'tool_call' | 'invalid_tool_call' }>;
type TextPart = Extract<ModelPart, { readonly text: string }>;

/** What the model has said in one step, and what of it the channel shows. */
class AnswerOfStep {
  readonly #one: StepOfRun;
  readonly #model: Model;
  readonly #step: number;
  readonly #escaper: TagEscaper | null;
  readonly #calls: ToolCall[] = [];
  #text = '';
  #reasoning = '';
  #isReasoningShown = false;
  /** Null before the response is posted. */
  #posting: Promise<void> | null = null;
  /** Null also if the channel takes no incomplete interaction, or shows nothing of the run. */
  #draft: ResponseDraft | null = null;

  constructor(one: StepOfRun, model: Model, step: number) {
    this.#one = one;
    this.#model = model;
    this.#step = step;
    this.#escaper = one.agent.allowHtmlResponses ? null : new TagEscaper();
  }

  /** Whether the response is posted, and incomplete. */
  get isShown(): boolean {
    return this.#draft !== null;
  }

  get hasText(): boolean {
    return this.#text !== '';
  }

  get hasReasoning(): boolean {
    return this.#reasoning !== '';
  }

  get isTooLong(): boolean {
    return answerText(this.#one.run).length + this.#text.length > MAX_CHARS;
  }

  /** Posts the response before the model has written anything. What fails then is thrown with its first text. */
  begin(): void {
    this.#posting = this.#postResponse();
    this.#posting.catch(() => undefined);
  }

  /** Waits for a post that is under way. Never rejects. */
  async posted(): Promise<void> {
    await this.#posting?.catch(() => undefined);
  }

  async add(part: TextPart | CallPart): Promise<void> {
    if (part.type === 'reasoning') {
      this.#reasoning = `${this.#reasoning}${part.text}`.slice(0, MAX_CHARS);
      return;
    }
    await this.#showReasoning();
    if (part.type !== 'text') {
      if (this.#calls.length < MAX_TOOL_CALLS) this.#calls.push(this.#callOf(part));
      return;
    }
    this.#text += part.text;
    await (this.#posting ??= this.#postResponse());
    this.#draft?.add(this.#escaper?.add(part.text) ?? part.text);
  }

  async finished({ reason, usage, cost }: Extract<ModelPart, { type: 'finish' }>): Promise<RunEvent> {
    await this.#showReasoning();
    await this.#posting;
    this.#draft?.add(this.#escaper?.end() ?? '');
    await this.settled();
    const data = { step: this.#step, text: this.#text, reasoning: this.#reasoning, toolCalls: this.#calls };
    return { type: 'ModelStepFinished.v1', data: { ...data, finish: reason, usage, cost } };
  }

  /** Waits until subscribers have all that the model has written. */
  async settled(): Promise<void> {
    await this.#posting;
    await this.#draft?.settled();
  }

  /** Before anything else of the step: the channel shows it in this order. */
  async #showReasoning(): Promise<void> {
    if (this.#isReasoningShown || this.#reasoning === '') return;
    this.#isReasoningShown = true;
    const content = [{ type: 'text', text: this.#reasoning }];
    await this.#one.channel.post({ role: 'agent_reasoning', content, name: `reasoning ${this.#step}` });
  }

  async #postResponse(): Promise<void> {
    const { run, channel, agent } = this.#one;
    const metadata = metadataOf(run, this.#model);
    const before = answerText(run);
    const posted = { role: 'agent_response', content: [], name: 'response', complete: false, metadata } as const;
    try {
      const ref = await channel.post(posted);
      if (ref === null) return;
      const shown = before === '' ? '' : `${agent.allowHtmlResponses ? before : escapedTags(before)}\n\n`;
      this.#draft = new ResponseDraft(channel, ref, shown);
    } catch (error) {
      // Then it is posted when it is complete.
      if (!(error instanceof ChannelRefusal && error.reason === 'too_many_open')) throw error;
    }
  }

  /** With an id of ours: those of models may repeat. */
  #callOf(part: CallPart): ToolCall {
    const id = `call-${this.#step}-${this.#calls.length + 1}`;
    if (part.type === 'tool_call') return { id, name: part.call.name, input: { ...part.call.input }, problem: null };
    const problem = part.problem === 'unknown_tool' ? 'there is no such tool' : 'the arguments do not fit the tool';
    return { id, name: part.name.slice(0, 200), input: { invalid: part.input.slice(0, MAX_SHOWN_INPUT) }, problem };
  }
}
