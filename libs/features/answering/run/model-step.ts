import { LRUCache } from 'lru-cache';

import { admitText } from '#libs/kernel/text.ts';
import {
  type Model,
  type ModelCall,
  type ModelEnd,
  type ModelMessage,
  type ModelPart,
  NO_USAGE,
} from '#libs/platform/model/index.ts';
import { unlessOvertaken } from '#libs/platform/reactors/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import type { Answering } from '../context.ts';
import type { Toolset } from '../tools/tool-step.ts';
import { metadataOf } from './response.ts';
import { ResponseDraft } from './response-draft.ts';
import { ChannelRefusal, type StepOfRun } from './run.channel.ts';
import { callOfModel } from './run.prompt.ts';
import { MAX_TOOL_CALLS } from './run.next.ts';
import type { RunModel } from './run.summary.ts';
import { answerText, failed, RUN, type Run, type RunEvent, SEPARATOR, type ToolCall } from './run.ts';

/** Of the text of all steps, and of the reasoning of one: an interaction holds no more. */
const MAX_CHARS = 100_000;
/** Of the arguments of a call that is not run. */
const MAX_SHOWN_INPUT = 500;

const NOT_MADE = `the call was not made: an answer may make at most ${MAX_TOOL_CALLS} calls`;

interface ModelInput extends Toolset {
  readonly model: Model;
  readonly conversation: readonly ModelMessage[];
  readonly step: number;
  readonly mayCallTools: boolean;
  readonly beginnings: AnswerBeginnings;
  /** For the request. */
  readonly traceparent: string | undefined;
}

/**
 * Calls the model once. Its text is streamed into the response, which is posted with its first words, or while the model
 * starts if nothing else of the step is expected to precede it.
 */
export async function runModelStep(
  one: StepOfRun,
  input: ModelInput,
  { store, log, maxTokens }: Pick<Answering, 'store' | 'log' | 'maxTokens'>,
): Promise<RunEvent> {
  const { model, step, mayCallTools, beginnings } = input;
  const run = await started(one, input);
  const call = callOfModel({ ...input, agent: one.agent, run, maxTokens });
  const about = { kind: model.kind, name: call.model ?? model.name };
  const answer = new AnswerOfStep({ ...one, run }, about, { step, isLast: !mayCallTools });
  answer.begin(beginnings.isText(call, model));
  const at = { stream: streamName(RUN, run.id), revision: run.changedRevision };
  try {
    return await unlessOvertaken(store, at, one.process.signal, (signal) =>
      outcomeOf(answer, model.stream(call, signal), ({ reason, detail }) => {
        signal.throwIfAborted();
        if (detail !== null) log.warn({ run: run.id, reason, detail }, 'a model call failed');
      }),
    );
  } finally {
    beginnings.learn(call, model, answer);
  }
}

/** Records that the step has started, and which tools it does without. The first step starts with the claim of the run. */
async function started({ run, process }: StepOfRun, { step, missed }: ModelInput): Promise<Run> {
  const events: RunEvent[] = [];
  if (run.started?.step !== step) events.push({ type: 'StepStarted.v1', data: { step, callId: null } });
  if (missed.length > 0 && !run.missed.some((known) => known.step === step)) {
    events.push({ type: 'ToolServersMissed.v1', data: { step, servers: [...missed] } });
  }
  return (events.length === 0 ? null : await process.recordIntent(...events)) ?? run;
}

type ModelFailure = Extract<ModelEnd, { type: 'error' }>;

async function outcomeOf(
  answer: AnswerOfStep,
  stream: AsyncIterable<ModelPart>,
  onFailure: (failure: ModelFailure) => void,
): Promise<RunEvent> {
  for await (const part of stream) {
    if (part.type === 'error') {
      onFailure(part);
      await answer.settled();
      const { reason, message, detail, usage, cost } = part;
      return failed(`model_${reason}`, message, { detail, usage: { ...usage }, cost });
    }
    if (part.type === 'finish') return answer.finished(part);
    await answer.add(part);
    if (answer.isFull) return answer.finished({ reason: 'length', usage: NO_USAGE, cost: null });
  }
  throw new TypeError('a stream of a model has no end');
}

type CallPart = Extract<ModelPart, { type: 'tool_call' | 'invalid_tool_call' }>;
type TextPart = Extract<ModelPart, { readonly text: string }>;
type Restart = Extract<ModelPart, { type: 'restart' }>;
type Finish = Extract<ModelEnd, { type: 'finish' }>;
/** Without what a message has that was not read to its end. */
type Finished = Pick<Finish, 'reason' | 'usage' | 'cost'> & Partial<Pick<Finish, 'model' | 'sent' | 'omitted'>>;

/** The answer of the model in one step, and how much of it the channel shows. */
class AnswerOfStep {
  readonly #one: StepOfRun;
  readonly #model: RunModel;
  readonly #step: number;
  /** Whether the model may call no tools. */
  readonly #isLast: boolean;
  /** Characters that the text may still have. */
  #room: number;
  readonly #calls: ToolCall[] = [];
  #text = '';
  #reasoning = '';
  #isReasoningShown = false;
  #receipt: Promise<void> | null = null;
  /** Null before the response is posted. */
  #posting: Promise<void> | null = null;
  /** Null also if the channel takes no incomplete interaction, or shows nothing of the run. */
  #draft: ResponseDraft | null = null;

  constructor(one: StepOfRun, model: RunModel, { step, isLast }: { readonly step: number; readonly isLast: boolean }) {
    this.#one = one;
    this.#model = model;
    this.#step = step;
    this.#isLast = isLast;
    const before = answerText(one.run);
    this.#room = MAX_CHARS - (before === '' ? 0 : before.length + SEPARATOR.length);
  }

  get hasText(): boolean {
    return this.#text !== '';
  }

  get hasReasoning(): boolean {
    return this.#reasoning !== '';
  }

  /** Whether the answer of the run can have no further text. */
  get isFull(): boolean {
    return this.#room <= 0;
  }

  /**
   * The first step records the receipt of the message, and a step that is expected to begin with text posts the response
   * before the model has written anything: both in one append. Their failures are thrown when text is added, or when the answer ends.
   */
  begin(isText: boolean): void {
    if (this.#step === 1) this.#receipt = this.#one.channel.recordReceipt();
    if (isText) this.#posting = this.#postResponse();
    this.#receipt?.catch(() => undefined);
    this.#posting?.catch(() => undefined);
  }

  async add(part: TextPart | CallPart | Restart): Promise<void> {
    if (part.type === 'restart') {
      this.#reasoning = '';
      return;
    }
    if (part.type === 'reasoning') {
      const room = MAX_CHARS - this.#reasoning.length;
      if (room > 0) this.#reasoning += admitText(part.text, room);
      return;
    }
    await this.#showReasoning();
    if (part.type !== 'text') {
      this.#calls.push(this.#callOf(part));
      return;
    }
    const text = admitText(part.text, Math.max(0, this.#room));
    // Nothing follows a text that was cut.
    this.#room = text.length < part.text.length ? 0 : this.#room - text.length;
    if (text === '') return;
    this.#text += text;
    await (this.#posting ??= this.#postResponse());
    this.#draft?.add(text);
  }

  async finished({ reason, usage, cost, model, sent, omitted }: Finished): Promise<RunEvent> {
    await this.#showReasoning();
    await this.settled();
    const { text, toolCalls } = { text: this.#text, toolCalls: this.#calls };
    const said = { step: this.#step, text, reasoning: this.#reasoning, toolCalls, finish: reason };
    const about = {
      ...(model !== undefined && { model }),
      ...(sent && { sent: { ...sent, message: { ...sent.message } } }),
      ...(omitted !== undefined && omitted.length > 0 && { omitted: [...omitted] }),
      ...(this.#isLast && { isLast: true }),
    };
    return { type: 'ModelStepFinished.v1', data: { ...said, usage: { ...usage }, cost, ...about } };
  }

  /** Waits until subscribers have all that the model has written, and the receipt of the message. */
  async settled(): Promise<void> {
    await this.#receipt;
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
    const { run, channel } = this.#one;
    const metadata = metadataOf(run, this.#model);
    const before = answerText(run);
    const posted = { role: 'agent_response', content: [], name: 'response', complete: false, metadata } as const;
    try {
      const response = await channel.post(posted);
      if (response === null) return;
      this.#draft = new ResponseDraft(channel, response.ref, before === '' ? '' : `${before}${SEPARATOR}`);
    } catch (error) {
      // Then it is posted when it is complete.
      if (!(error instanceof ChannelRefusal && error.reason === 'too_many_open')) throw error;
    }
  }

  /** With an id of ours: those of models may repeat. */
  #callOf(part: CallPart): ToolCall {
    const id = `call-${this.#step}-${this.#calls.length + 1}`;
    if (this.#calls.length >= MAX_TOOL_CALLS) {
      const name = part.type === 'tool_call' ? part.call.name : part.name;
      return { id, name, input: {}, problem: NOT_MADE, isOffered: false };
    }
    if (part.type === 'tool_call') return { id, name: part.call.name, input: { ...part.call.input }, problem: null };
    const { name } = part;
    const input = { invalid: admitText(part.input, MAX_SHOWN_INPUT) };
    if (part.problem === 'invalid_arguments') return { id, name, input, problem: 'the arguments do not fit the tool' };
    const problem = this.#isLast ? 'no tool may be called any longer' : 'there is no such tool';
    return { id, name, input, problem, isOffered: false };
  }
}

const MAX_MODELS = 1_000;

type Call = Pick<ModelCall, 'model' | 'tools' | 'mayCallTools' | 'reasoningEffort' | 'thinkingBudget'>;

/**
 * Whether the answers of models begin with text, as this process has seen it. The response of an answer that begins with text can
 * be posted while the model starts, and its first text is shown without waiting for the event store. A model is expected to
 * begin with text if its last answer did. It is not asked for anything that precedes text in the tree: tool calls and
 * reasoning. One that has reasoned without being asked is not expected to begin with text again.
 */
export class AnswerBeginnings {
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
