import type { StreamEvent } from '#libs/kernel/event.ts';
import { type Process, reactor } from '#libs/platform/reactors/index.ts';

import { extractiveModel } from './extractive-model.ts';
import { runModelStep } from './model-step.ts';
import { complete, showEnd } from './response.ts';
import { ChannelRefusal, RunInChannel } from './run.channel.ts';
import { conversationOf } from './run.conversation.ts';
import { failed, type RunParts, type StepOfRun } from './run.parts.ts';
import { answerAsker, endQuestion, isAwaited } from '../tools/run.questions.ts';
import { runEntity } from './run.read.ts';
import { EXTERNAL, hasEnded, isAtAgent, isWaiting, type Run, type RunEvent, type RunState } from './run.ts';
import { takeTurn } from './run.turns.ts';
import { runToolStep } from './tool-step.ts';
import { overridesOf, temperatureOf } from './run.prompt.ts';
import { chatSpan, RunTrace, toolSpan } from './run.trace.ts';
import { nextStep } from './run.next.ts';
import { toolsOf } from '../tools/toolset.ts';

/** Longest time of a step; a model has less. */
const STEP_TIMEOUT_MS = 180_000;

/** Steps at a time that wait for a model. */
const AIDED = 256;

/**
 * Moves runs on: each step of the model and each tool call is one event, which triggers the next one, so a step that a
 * worker did not finish is done by another one.
 */
export function agentRuns(parts: RunParts) {
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
    // `external-runs` limit, and for its turn until `run-turns` passes it on.
    isEnded: (run) => run !== null && (hasEnded(run) || isWaiting(run) || isAtAgent(run) || run.turn === 'waiting'),
    startRevision: (run) => run?.startRevision ?? null,
    async handle(event, process) {
      const { state: run } = process;
      if (run === null || isSuperseded(event, run)) return [];
      try {
        return [await next(parts, run, process)];
      } catch (error) {
        if (!(error instanceof ChannelRefusal)) throw error;
        return [failed(`channel_${error.reason}`, 'the channel does not take the answer')];
      }
    },
    giveUp(_run, { reason }) {
      const why = reason === 'deadline' ? 'the run took too long' : 'a step of the run failed repeatedly';
      return [failed(reason, why)];
    },
    limits: { ...(parts.model !== null && { concurrency: AIDED }), stepTimeoutMs: STEP_TIMEOUT_MS },
  });
}

/**
 * Shows the end of runs that failed or were cancelled in their channels. The end of a run that another one waits for is
 * passed to that one.
 */
export function runEndings(parts: RunParts) {
  return reactor<RunState, RunEvent>({
    name: 'run-endings',
    on: ['RunCompleted.v1', 'RunFailed.v1', 'RunCancelled.v1'],
    process: runEntity.projection,
    startRevision: (run) => run?.changedRevision ?? null,
    isEnded: (run) => run !== null && run.isEndShown,
    // Its response shows the end. A run that was asked has none.
    hasEnded: ({ type, data }) => type === 'RunCompleted.v1' && data.responseId !== null,
    async handle(_event, { state: run, commandContext }) {
      if (run === null) return [];
      await endQuestion(run, commandContext('question'), parts.questions.runs);
      const { correlationId, traceparent } = commandContext('trace');
      const trace = new RunTrace(run, traceparent, parts.spans);
      if (run.phase !== 'completed') trace.ended(run.failure?.reason ?? run.phase);
      const cause = { correlationId, traceparent: trace.traceparent };
      if (run.asked === null) await showEnd(run, new RunInChannel(run, parts.channel, cause));
      else await answerAsker(run, commandContext('answer'), parts.questions.runs);
      return [{ type: 'RunEndShown.v1', data: {} }];
    },
    giveUp: () => [{ type: 'RunEndShown.v1', data: {} }],
  });
}

/** A later event is responsible for the run. */
function isSuperseded({ revision }: StreamEvent<RunEvent>, run: Run): boolean {
  return revision < run.stepRevision;
}

async function next(parts: RunParts, run: Run, process: Process<RunState, RunEvent>): Promise<RunEvent> {
  const agent = await parts.agents.agent(run.organizationId, run.agentId);
  if (agent === null || !agent.isActive) return failed('agent_gone', 'the agent does not exist any longer');
  const { correlationId, traceparent } = process.commandContext('trace');
  const trace = new RunTrace(run, traceparent, parts.spans);
  const channel = new RunInChannel(run, parts.channel, { correlationId, traceparent: trace.traceparent });
  const step: StepOfRun = { run, agent, process, channel };
  const model = parts.model ?? extractiveModel;
  if (run.phase === 'queued') {
    const { runs } = parts.questions;
    if (!(await isAwaited(run, process.commandContext('asker'), runs))) return { type: 'RunCancelled.v1', data: {} };
    // Teams get the messages as they come, and order their answers themselves.
    const isExternal = agent.runtime === EXTERNAL;
    const refused = isExternal ? null : await takeTurn(run, process.commandContext, parts.turns);
    if (refused !== null) return refused;
    await channel.recordReceipt();
    const { kind, name } = isExternal ? { kind: EXTERNAL, name: agent.name } : model;
    return { type: 'RunClaimed.v1', data: { agentName: agent.name, model: { kind, name } } };
  }
  const todo = nextStep(run);
  if (todo.kind === 'fail') return failed(todo.reason, todo.message);
  if (todo.kind === 'complete') {
    const completed = await complete(step, run.claim?.model ?? model);
    trace.ended(null);
    return completed;
  }
  const call = todo.kind === 'tool' ? todo.call.name : null;
  const wanted = { context: process.commandContext('channel'), call, signal: process.signal };
  const { tools, missed } = await toolsOf(agent, run, wanted, parts);
  switch (todo.kind) {
    case 'tool':
      await endQuestion(run, process.commandContext('question'), parts.questions.runs);
      return trace.step(toolSpan(todo), () => runToolStep(step, todo, { tools, missed }));
    case 'model': {
      const conversation = await conversationOf(parts.conversations, run);
      if (conversation === null) return failed('message_gone', 'the message does not exist');
      const given = { ...parts, model, conversation, missed, tools, mayCallTools: todo.mayCallTools };
      const span = chatSpan(model, { ...overridesOf(agent, run), temperature: temperatureOf(agent), step: todo.step });
      return trace.step(span, (traceparent) => runModelStep(step, { ...given, traceparent }, todo.step));
    }
  }
}
