/*
 * Event names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import { accept, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import type { Timestamp } from '#libs/kernel/clock.ts';
import type { StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import { tokenUsage } from '#libs/kernel/token-usage.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `run-<id>`. */
export const RUN = 'run';

const jsonMap = z.record(z.string(), z.unknown());

const toolCall = z.object({
  id: z.string(),
  name: z.string(),
  input: jsonMap,
  /** Why the call is answered with a failure instead of being run; null for one that can be run. */
  problem: z.string().nullable(),
  /** False for a call that cannot be made: the model reads its `problem`, and the run has no step for it. */
  isOffered: z.boolean().optional(),
});

const step = z.int().positive();

const requestedRun = {
  id: z.string(),
  agentId: z.string(),
  channelId: z.string(),
  messageId: z.string(),
  turnId: z.string(),
  spanId: z.string(),
  depth: z.int().min(0),
  invocationConfig: jsonMap.nullable(),
};

const toolOutcome = { status: z.enum(['success', 'failure', 'rate_limited']), result: jsonMap };

export const runCodec = defineEvents({
  /**
   * `messageId`: the interaction that is answered. `turnId`, `spanId`: its turn and span; what the run posts has the same
   * turn, below that span. `depth`: hops between agents in this turn so far.
   */
  'RunRequested.v1': z.object(requestedRun),
  /** Requests the run of an agent that another agent asks. The message is the one that the asking run answers. */
  'QuestionReceived.v1': z.object({
    ...requestedRun,
    question: z.string(),
    askedBy: z.object({ runId: z.string(), agentName: z.string() }),
  }),
  /** Waits until the agent's earlier runs in the channel have ended. */
  'RunQueued.v1': z.object({}),
  /** The next queued run of the channel may start. */
  'RunAdmitted.v1': z.object({}),
  /** A worker has begun. `model`: what writes the answer. */
  'RunClaimed.v1': z.object({ agentName: z.string(), model: z.object({ kind: z.string(), name: z.string() }) }),
  /** The team of the agent can answer now. */
  'RunHandedOver.v1': z.object({}),
  /** Precedes the effects of a step. `callId`: of the tool call that the step runs; null for a step of the model. */
  'StepStarted.v1': z.object({ step, callId: z.string().nullable() }),
  /** Tools that a step of the model does without. */
  'ToolServersMissed.v1': z.object({ step, servers: z.array(z.object({ name: z.string(), reason: z.string() })) }),
  /**
   * `text` and `reasoning` as the model wrote them. `cost`: in the currency of the configured prices; null without.
   * `model`: what the endpoint calls the model that answered. `sent`: what the endpoint wants to get back, see
   * `SentMessage`. `omitted`: what the endpoint refused in the request. `isLast`: the model could call no tools.
   */
  'ModelStepFinished.v1': z.object({
    step,
    text: z.string(),
    reasoning: z.string(),
    toolCalls: z.array(toolCall),
    finish: z.string(),
    usage: tokenUsage,
    cost: z.number().nullable(),
    model: z.string().optional(),
    sent: z.object({ source: z.string(), message: jsonMap }).nullish(),
    omitted: z.array(z.string()).optional(),
    isLast: z.boolean().optional(),
  }),
  /** The team of an external agent is about to show a tool call in the channel. */
  'ToolCallPosted.v1': z.object({ callId: z.string(), name: z.string() }),
  /** The channel shows the result of that call. */
  'ToolResultPosted.v1': z.object({ callId: z.string() }),
  /** The channel has refused the call, and does not show it. */
  'ToolCallRefused.v1': z.object({ callId: z.string() }),
  'ToolStepFinished.v1': z.object({ step, callId: z.string(), ...toolOutcome }),
  /** A tool call asks another agent. The run waits for the run `runId`, which is requested next. */
  'QuestionAsked.v1': z.object({
    step,
    callId: z.string(),
    runId: z.string(),
    agentId: z.string(),
    question: z.string(),
  }),
  /** The run `runId` has ended, or took too long: what the call comes to. */
  'QuestionAnswered.v1': z.object({ callId: z.string(), runId: z.string(), ...toolOutcome }),
  /** `responseId`: the interaction with the answer; null if the answer is empty. */
  'RunCompleted.v1': z.object({ responseId: z.string().nullable() }),
  /**
   * `message`: a sentence for users, without a full stop. `detail`: what the endpoint said, for administrators. `usage`,
   * `cost`: of the failed step.
   */
  'RunFailed.v1': z.object({
    reason: z.string(),
    message: z.string(),
    detail: z.string().nullish(),
    usage: tokenUsage.optional(),
    cost: z.number().nullish(),
  }),
  'RunCancelled.v1': z.object({}),
  /** The channel shows the end of a run that failed or was cancelled. */
  'RunEndShown.v1': z.object({}),
});

export type RunEvent = EventOf<typeof runCodec>;
type Data<Type extends RunEvent['type']> = Extract<RunEvent, { type: Type }>['data'];

export type RunRequested = Data<'RunRequested.v1'>;
export type QuestionReceived = Data<'QuestionReceived.v1'>;
export type QuestionAnswered = Data<'QuestionAnswered.v1'>;
/** The question of a step to another agent. `answer`: null while the run waits for it. */
export type Question = Data<'QuestionAsked.v1'> & {
  readonly revision: StreamRevision;
  readonly answer: Pick<QuestionAnswered, 'status' | 'result'> | null;
};
export type ToolCall = z.infer<typeof toolCall>;

interface StepTimes {
  readonly step: number;
  readonly startedAt: Timestamp;
  readonly finishedAt: Timestamp;
}
export type ModelStep = StepTimes & { readonly kind: 'model' } & Omit<Data<'ModelStepFinished.v1'>, 'step'>;
export type ToolStep = StepTimes & { readonly kind: 'tool'; readonly name: string } & Omit<
    Data<'ToolStepFinished.v1'>,
    'step'
  >;
export type Step = ModelStep | ToolStep;

type RunPhase = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled';

export type Run = RunRequested &
  EntityState & {
    readonly phase: RunPhase;
    /** In the lane of its agent and channel. Null for a run that did not have to wait. */
    readonly lane: 'waiting' | 'admitted' | null;
    /** Revision of the event from which its time is limited. */
    readonly startRevision: StreamRevision;
    readonly claim: Data<'RunClaimed.v1'> | null;
    /** Of a run that answers another agent instead of the channel, which shows nothing of it. */
    readonly asked: Pick<QuestionReceived, 'question' | 'askedBy'> | null;
    /** The question that the started step has asked. */
    readonly question: Question | null;
    /** The finished ones, in order. */
    readonly steps: readonly Step[];
    /** The step that has started and not finished. */
    readonly started: { readonly step: number; readonly callId: string | null; readonly at: Timestamp } | null;
    readonly missed: readonly Data<'ToolServersMissed.v1'>[];
    /** Tool calls of an external agent whose results the channel does not show. */
    readonly openCalls: readonly CalledTool[];
    /** Ids of the tool calls of an external agent whose results the channel shows. */
    readonly endedCalls: readonly string[];
    /** Characters that the outcomes of the steps have as JSON. */
    readonly size: number;
    readonly responseId: string | null;
    readonly failure: Data<'RunFailed.v1'> | null;
    readonly endedAt: Timestamp | null;
    /** Whether the channel shows the end of the run. */
    readonly isEndShown: boolean;
    /** Revision of the event that the next step follows from. */
    readonly stepRevision: StreamRevision;
  };

/** `null` until the run is requested. */
export type RunState = Run | null;
export const runFold: Fold<RunState, RunEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'RunRequested.v1' || event.type === 'QuestionReceived.v1') return requested(event);
    // A run that has ended stays as it is, but for what its channel shows.
    if (state === null || (hasEnded(state) && event.type !== 'RunEndShown.v1')) return state;
    return { ...state, ...changedBy(event), ...changes(state, event) };
  },
};

function requested(event: StreamEvent<Extract<RunEvent, { type: 'RunRequested.v1' | 'QuestionReceived.v1' }>>): Run {
  const { question, askedBy, ...data } = { question: null, askedBy: null, ...event.data };
  return {
    ...data,
    ...createdBy(event),
    phase: 'queued',
    lane: null,
    startRevision: event.revision,
    claim: null,
    asked: askedBy === null ? null : { question, askedBy },
    question: null,
    steps: [],
    started: null,
    missed: [],
    openCalls: [],
    endedCalls: [],
    size: 0,
    responseId: null,
    failure: null,
    endedAt: null,
    isEndShown: false,
    stepRevision: event.revision,
  };
}

function changes(run: Run, { type, data, metadata: { at }, revision }: StreamEvent<RunEvent>): Partial<Run> {
  switch (type) {
    case 'RunRequested.v1':
    case 'QuestionReceived.v1':
    case 'RunHandedOver.v1':
      return {};
    case 'RunQueued.v1':
      return { lane: 'waiting' };
    case 'RunAdmitted.v1':
      return { lane: 'admitted', startRevision: revision, stepRevision: revision };
    case 'RunClaimed.v1':
      return { phase: 'running', claim: data, stepRevision: revision };
    case 'StepStarted.v1':
      return { started: { ...data, at } };
    case 'ToolCallPosted.v1':
      return { openCalls: [...run.openCalls, { id: data.callId, name: data.name }] };
    case 'ToolResultPosted.v1':
    case 'ToolCallRefused.v1': {
      const openCalls = run.openCalls.filter(({ id }) => id !== data.callId);
      if (type === 'ToolCallRefused.v1' || openCalls.length === run.openCalls.length) return { openCalls };
      return { openCalls, endedCalls: [...run.endedCalls, data.callId] };
    }
    case 'ToolServersMissed.v1':
      return { missed: [...run.missed, data] };
    case 'ModelStepFinished.v1':
    case 'ToolStepFinished.v1': {
      const times = { startedAt: run.started?.at ?? at, finishedAt: at };
      const finished: Step =
        'callId' in data
          ? { kind: 'tool', name: callOf(run, data.callId)?.name ?? '', ...times, ...data }
          : { kind: 'model', ...times, ...data };
      const size = run.size + JSON.stringify(data).length;
      return { steps: [...run.steps, finished], size, started: null, question: null, stepRevision: revision };
    }
    case 'QuestionAsked.v1':
      return { question: { ...data, revision, answer: null } };
    case 'QuestionAnswered.v1': {
      const { callId, runId, ...answer } = data;
      if (run.question?.runId !== runId || run.question.callId !== callId) return {};
      return { question: { ...run.question, answer }, stepRevision: revision };
    }
    case 'RunCompleted.v1':
      return { phase: 'completed', ...data, endedAt: at, started: null, isEndShown: run.asked === null };
    case 'RunFailed.v1':
      return { phase: 'failed', failure: data, endedAt: at, started: null };
    case 'RunCancelled.v1':
      return { phase: 'cancelled', endedAt: at, started: null };
    case 'RunEndShown.v1':
      return { isEndShown: true };
  }
}

export function hasEnded({ phase }: Run): boolean {
  return phase !== 'queued' && phase !== 'running';
}

/** Whether the run continues only when another run ends: one that it asks. */
export function isWaiting({ question }: Pick<Run, 'question'>): boolean {
  return question !== null && question.answer === null;
}

/** Kind of the model of runs of external agents. */
export const EXTERNAL = 'external';

/** Whether the team of an external agent is to answer. */
export function isAtAgent({ claim, steps }: Pick<Run, 'claim' | 'steps'>): boolean {
  return claim?.model.kind === EXTERNAL && steps.length === 0;
}

export function callOf({ steps }: Pick<Run, 'steps'>, callId: string): ToolCall | null {
  const calls = steps.flatMap((one) => (one.kind === 'model' ? one.toolCalls : []));
  return calls.find(({ id }) => id === callId) ?? null;
}

export interface CalledTool {
  readonly id: string;
  readonly name: string;
}

/** Between the texts of two steps. */
export const SEPARATOR = '\n\n';

/** The answer so far: what the model has written in all of its steps. */
export function answerText({ steps }: Pick<Run, 'steps'>): string {
  return steps.flatMap((one) => (one.kind === 'model' && one.text !== '' ? [one.text] : [])).join(SEPARATOR);
}

export function failed(
  reason: string,
  message: string,
  more: Pick<Data<'RunFailed.v1'>, 'detail' | 'usage' | 'cost'> = {},
): RunEvent {
  return { type: 'RunFailed.v1', data: { reason, message, ...more } };
}

/** A run that has ended stays as it is. */
export function decideCancel(run: Run): Decision<RunEvent, never> {
  return hasEnded(run) ? accept() : accept({ type: 'RunCancelled.v1', data: {} });
}

/** A run that has begun, or may begin, stays as it is. */
export function decideAdmit({ phase, lane }: Run): Decision<RunEvent, never> {
  return phase === 'queued' && lane !== 'admitted' ? accept({ type: 'RunAdmitted.v1', data: {} }) : accept();
}
