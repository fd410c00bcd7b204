import { accept, type Decision } from '#libs/kernel/decider.ts';
import type { StreamEvent } from '#libs/kernel/event.ts';
import { defineEvents } from '#libs/platform/eventstore/index.ts';
import { type EndedProcess, reactor } from '#libs/platform/reactors/index.ts';

import type { Answering } from '../context.ts';
import { endDelivery } from '../external/run.external.ts';
import { answerAsker, endQuestion } from '../tools/run.questions.ts';
import { endCalls, showEnd, unfinishedCalls } from './response.ts';
import { RunInChannel } from './run.channel.ts';
import { runLaneId } from './run-lane.ts';
import { leaveLane, QUEUE_FULL } from './run-lanes.ts';
import { runEntity } from './run.read.ts';
import { RunTrace } from './run.trace.ts';
import { hasEnded, RUN, type Run, runCodec, type RunEvent } from './run.ts';

const NAME = 'run-ends';

/**
 * The effects of the end of a run, in order: its question ends; its channel shows the end, or the asking run gets the answer;
 * the inbox of its agent ends the delivery; the next run of its lane may begin. All effects are repeatable commands, so the
 * reactor records nothing of its own.
 */
export function runEnds(answering: Answering) {
  // Whether the channel shows the end may have changed since: to show it again does nothing.
  const endedRun = async (process: EndedProcess): Promise<Run | null> => {
    const run = await process.stateAfterEvent(runEntity.projection);
    return run !== null && hasEnded(run) && run.organizationId === process.organizationId ? run : null;
  };
  return reactor<null, never, RunEvent>({
    name: NAME,
    formerly: ['run-endings', 'run-turns'],
    from: 'former',
    // A former group may hold `RunEndShown` of a run whose end it has handled.
    on: ['RunCompleted.v1', 'RunFailed.v1', 'RunCancelled.v1', 'RunEndShown.v1'],
    triggers: runCodec,
    processOf: (_event, stream) => stream.slice(`${RUN}-`.length),
    process: { category: 'run-ends', codec: defineEvents({}), fold: { initialState: null, evolve: () => null } },
    isEnded: () => false,
    // The step that has shown an end does the rest, too.
    hasEnded: ({ type, metadata: { actor } }) => type === 'RunEndShown.v1' && actor.id === `reactor:${NAME}`,
    async handle(_event: StreamEvent<RunEvent>, process) {
      const run = await endedRun(process);
      if (run === null) return [];
      await endToolCalls(run, process, answering);
      if (!run.isEndShown) await show(run, process, answering);
      await release(run, process, answering);
      return [];
    },
    /** A response that cannot be shown must not hold the lane. */
    async giveUp(_state, _why, _event, process) {
      const run = await endedRun(process);
      if (run !== null) await release(run, process, answering);
      return [];
    },
    limits: { concurrency: 32 },
  });
}

/** The response of a completed run shows its end. A run that was asked has none. */
async function show(run: Run, { commandContext }: EndedProcess, answering: Answering): Promise<void> {
  const { runs, spans } = answering;
  // 1. No answer is waited for any longer.
  await endQuestion(run, commandContext('question'), runs);

  // 2. Show the end in the channel, or answer the run that waits for it.
  const { correlationId, traceparent } = commandContext('trace');
  const trace = new RunTrace(run, traceparent, spans);
  if (run.phase !== 'completed') trace.ended(run.failure?.reason ?? run.phase);
  const cause = { correlationId, traceparent: trace.traceparent };
  if (run.asked === null) await showEnd(run, new RunInChannel(run, answering, cause));
  else await answerAsker(run, commandContext('answer'), runs);
}

/** Also of a completed run, which shows its end itself. */
async function endToolCalls(run: Run, { commandContext }: EndedProcess, answering: Answering): Promise<void> {
  if (run.asked !== null || unfinishedCalls(run).length === 0) return;
  const { correlationId, traceparent } = commandContext('calls');
  await endCalls(run, new RunInChannel(run, answering, { correlationId, traceparent }));
}

async function release(run: Run, { commandContext }: EndedProcess, answering: Answering): Promise<void> {
  const { runs, inboxes } = answering;
  // 3. Readers that wait for the run get it from here on.
  if (!run.isEndShown) await runs.update(commandContext('shown'), run.id, decideShowEnd);

  // 4. The team of an external agent need not answer any longer.
  await endDelivery(run, commandContext('inbox'), inboxes);

  // 5. The next run of the lane may begin, unless the run never had a place in it.
  if (run.asked === null && run.failure?.reason !== QUEUE_FULL)
    await leaveLane({ id: runLaneId(run), runId: run.id }, commandContext, answering);
}

/** Once, and only for a run that has ended. */
export function decideShowEnd(run: Run): Decision<RunEvent, never> {
  return hasEnded(run) && !run.isEndShown ? accept({ type: 'RunEndShown.v1', data: {} }) : accept();
}
