import type { StreamEvent } from '#libs/kernel/event.ts';
import { type Process, reactor } from '#libs/platform/reactors/index.ts';

import type { Answering } from '../context.ts';
import { endQuestion, isAwaited } from '../tools/run.questions.ts';
import { runToolStep, toolsOf } from '../tools/tool-step.ts';
import { extractiveModel } from './extractive-model.ts';
import { AnswerBeginnings, runModelStep } from './model-step.ts';
import { complete } from './response.ts';
import { ChannelRefusal, RunInChannel, type StepOfRun } from './run.channel.ts';
import { conversationOf } from './run.conversation.ts';
import { enterLane } from './run-lanes.ts';
import { nextStep } from './run.next.ts';
import { overridesOf, temperatureOf } from './run.prompt.ts';
import { runEntity } from './run.read.ts';
import { chatSpan, RunTrace, toolSpan } from './run.trace.ts';
import { EXTERNAL, failed, hasEnded, isAtAgent, isWaiting, type Run, type RunEvent, type RunState } from './run.ts';

type Stepping = Answering & { readonly beginnings: AnswerBeginnings };

/** Longest time of a step; a model has less. */
const STEP_TIMEOUT_MS = 180_000;

/** Steps at a time that wait for a model. */
const AIDED = 256;

/**
 * Moves runs on: each step of the model and each tool call is one event, which triggers the next one, so a step that a
 * worker did not finish is done by another one.
 */
export function agentRuns(answering: Answering) {
  const stepping = { ...answering, beginnings: new AnswerBeginnings() };
  return reactor<RunState, RunEvent>({
    name: 'agent-runs',
    on: [
      'RunRequested.v1',
      'QuestionReceived.v1',
      'RunAdmitted.v1',
      'RunClaimed.v1',
      'ModelStepFinished.v1',
      'ToolStepFinished.v1',
      'QuestionAnswered.v1',
    ],
    process: runEntity.projection,
    // A run that waits is left alone: for another run or a team until the answer, whose time `run-questions` and
    // `external-runs` limit, and in its lane until `run-ends` admits it.
    isEnded: (run) => run !== null && (hasEnded(run) || isWaiting(run) || isAtAgent(run) || run.lane === 'waiting'),
    startRevision: (run) => run?.startRevision ?? null,
    async handle(event, process) {
      const { state: run } = process;
      if (run === null || isSuperseded(event, run)) return [];
      try {
        return await next(stepping, run, process);
      } catch (error) {
        if (!(error instanceof ChannelRefusal)) throw error;
        return [failed(`channel_${error.reason}`, 'the channel does not take the answer')];
      }
    },
    giveUp(_run, { reason }) {
      const why = reason === 'deadline' ? 'the run took too long' : 'a step of the run failed repeatedly';
      return [failed(reason, why)];
    },
    limits: { ...(answering.model !== null && { concurrency: AIDED }), stepTimeoutMs: STEP_TIMEOUT_MS },
  });
}

/** A later event is responsible for the run. */
function isSuperseded({ revision }: StreamEvent<RunEvent>, run: Run): boolean {
  return revision < run.stepRevision;
}

async function next(answering: Stepping, run: Run, process: Process<RunState, RunEvent>): Promise<readonly RunEvent[]> {
  const { organizationId, agentId } = run;
  const agent = await answering.agents.agent(organizationId, agentId);
  if (agent === null || !agent.isActive) return [failed('agent_gone', 'the agent does not exist any longer')];
  const { correlationId, traceparent } = process.commandContext('trace');
  const trace = new RunTrace(run, traceparent, answering.spans);
  const channel = new RunInChannel(run, answering, { correlationId, traceparent: trace.traceparent });
  const step = { run, agent, process, channel };
  return run.phase === 'queued' ? begin(step, answering) : [await stepOn(step, trace, answering)];
}

/** Claims a run that its lane admits. */
async function begin({ run, agent, process, channel }: StepOfRun, answering: Answering): Promise<readonly RunEvent[]> {
  const isAsked = await isAwaited(run, answering.runs);
  if (!isAsked) return [{ type: 'RunCancelled.v1', data: {} }];
  // Teams get the messages as they come, and order their answers themselves.
  const isExternal = agent.runtime === EXTERNAL;
  const refused = isExternal ? null : await enterLane(run, process.commandContext, answering);
  if (refused !== null) return [refused];
  // With a model, the receipt goes with the first post of the answer.
  if (isExternal) await channel.recordReceipt();
  const { kind, name } = isExternal ? { kind: EXTERNAL, name: agent.name } : (answering.model ?? extractiveModel);
  const claimed: RunEvent = { type: 'RunClaimed.v1', data: { agentName: agent.name, model: { kind, name } } };
  // A model may be asked again: that its step has started needs no append of its own.
  return isExternal ? [claimed] : [claimed, { type: 'StepStarted.v1', data: { step: 1, callId: null } }];
}

async function stepOn(one: StepOfRun, trace: RunTrace, answering: Stepping): Promise<RunEvent> {
  const { run, agent, process } = one;
  const model = answering.model ?? extractiveModel;
  const todo = nextStep(run);
  if (todo.kind === 'fail') return failed(todo.reason, todo.message);
  if (todo.kind === 'complete') {
    const completed = await complete(one, run.claim?.model ?? model);
    trace.ended(null);
    return completed;
  }
  const call = todo.kind === 'tool' ? todo.call.name : null;
  const wanted = { call, signal: process.signal };
  const toolset = await toolsOf(agent, run, wanted, answering);
  if (todo.kind === 'tool') {
    await endQuestion(run, process.commandContext('question'), answering.runs);
    return trace.step(toolSpan(todo), () => runToolStep(one, todo, toolset));
  }
  const conversation = await conversationOf(answering.channels.queries, run);
  if (conversation === null) return failed('message_gone', 'the message does not exist');
  const { beginnings } = answering;
  const input = { ...toolset, ...todo, model, conversation, beginnings };
  const span = chatSpan(model, { ...overridesOf(agent, run), temperature: temperatureOf(agent), step: todo.step });
  return trace.step(span, (forRequest) => runModelStep(one, { ...input, traceparent: forRequest }, answering));
}
