/* How runs of one agent in one channel follow each other. */
import { type Channels, parseInteractionId } from '#libs/features/channels/index.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

import type { Answering } from '../context.ts';
import { isReplaced, replacedRuns, runLaneId } from './run-lane.ts';
import { decideAdmit, decideCancel, failed, hasEnded, type Run, type RunEvent } from './run.ts';

/** The run fails, because too many wait in its lane. */
export const QUEUE_FULL = 'queue_full';

/** Context of a command whose id follows from the step and the name. */
type ContextOf = (name: string) => CommandContext;

/**
 * Enters the lane of a run that was requested. All effects are repeatable commands.
 *
 * @returns null if the run may begin, else the event of a run that has to wait, or cannot, or is replaced
 */
export async function enterLane(
  run: Run,
  contextOf: ContextOf,
  answering: Pick<Answering, 'channels' | 'lanes' | 'runs'>,
): Promise<RunEvent | null> {
  // Runs that answer other runs would wait for those that wait for them.
  if (run.asked !== null || run.lane === 'admitted') return null;
  const { lanes, runs } = answering;
  const id = runLaneId(run);
  const entry = { id, runId: run.id, sequence: parseInteractionId(run.messageId)?.sequence ?? 0 };
  const isRestart = await restarts(run, entry.sequence, contextOf('concurrency'), answering.channels);
  for (;;) {
    // 1. Enter; a repeated attempt finds its entry.
    const { lane, refusal } = await lanes.enter(contextOf('enter lane'), entry, isRestart);

    // 2. A later message has replaced this run.
    if (isReplaced(lane, entry)) return { type: 'RunCancelled.v1', data: {} };

    // 3. Cancel the replaced runs, also those of another run, whose worker may have died before it cancelled them.
    for (const replaced of replacedRuns(lane)) {
      await runs.update(contextOf(`replace ${replaced}`), replaced, decideCancel);
    }

    // 4. The current run of the lane is this one, or is alive: this run begins, waits, or has no slot.
    const current = lane?.current?.runId;
    if (current === run.id) return null;
    if (current !== undefined && !isOver(await runs.inLog(run.organizationId, current))) {
      return refusal === null
        ? { type: 'RunQueued.v1', data: {} }
        : failed(QUEUE_FULL, 'too many messages wait for this agent');
    }

    // 5. The current run is over and has not left: `run-ends` has given up. It leaves here, and this run enters again.
    if (current !== undefined) await leaveLane({ id, runId: current }, contextOf, answering);
  }
}

/**
 * As the channel has it at the message or later. Messages of agents wait in their lane, so that agents that answer each other
 * end nothing that a user has asked for.
 */
async function restarts({ depth, channelId }: Run, sequence: number, context: CommandContext, channels: Channels) {
  const seenRevision = streamRevision(Math.max(0, sequence - 1));
  return depth === 0 && (await channels.runConcurrency({ ...context, seenRevision }, channelId)) === 'restart';
}

/** A run leaves its lane, and the next one that is alive is admitted. Repeatable. */
export async function leaveLane(
  { id, runId }: { readonly id: EntityId; readonly runId: EntityId },
  contextOf: ContextOf,
  { lanes, runs }: Pick<Answering, 'lanes' | 'runs'>,
): Promise<void> {
  for (let over = runId; ;) {
    // 1. Leave.
    const lane = await lanes.leave(contextOf(`leave ${over}`), id, over);
    const next = lane?.current?.runId;
    if (lane === null || next === undefined) return;

    // 2. Admit the next run. It continues in the name of its own request, not of the run before it.
    const context = { ...contextOf(`admit ${next}`), ...(await runs.causeOf(next)) };
    const admitted = await runs.update(context, next, decideAdmit);

    // 3. A run that was cancelled while a worker was about to enter it is over already, and leaves as well.
    if (admitted.ok && !isOver(admitted.entity)) return;
    over = next;
  }
}

function isOver(run: Run | null): boolean {
  return run === null || (hasEnded(run) && run.isEndShown);
}
