/*
 * Runs of one agent in one channel take turns: a message that arrives during a run is answered after it. A run that has to
 * wait is not handled until its turn is passed to it, so however many wait, they occupy no worker. In channels that restart,
 * the message of a user ends the runs that answer earlier messages, and its own run takes the turn once they have left.
 */
import { parseInteractionId } from '#libs/features/interactions/index.ts';
import { accept, type Decision } from '#libs/kernel/decider.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { defineEvents } from '#libs/platform/eventstore/index.ts';
import { reactor } from '#libs/platform/reactors/index.ts';

import { type RunInboxes, tellEnd } from '../external/run.inbox.ts';
import { isReplaced, replacedRuns, runLaneId } from './run-lane.ts';
import type { RunLanes } from './run-lane.read.ts';
import type { Runs } from './run.read.ts';
import { decideCancel, hasEnded, RUN, type Run, runCodec, type RunEvent } from './run.ts';

export interface TurnParts {
  readonly inboxes: Pick<RunInboxes, 'end'>;
  readonly runs: Runs;
  readonly lanes: RunLanes;
  /** What a message does to runs that answer earlier ones. @throws `Fault` `store_unavailable` */
  readonly runConcurrency: (context: CommandContext, channelId: EntityId) => Promise<'queue' | 'restart'>;
}

/** Context of a command whose id follows from the step and the name. */
type ContextOf = (name: string) => CommandContext;

/**
 * Takes the turn of a run that was requested.
 *
 * @returns null if it is the run's turn, else the event of a run that has to wait, or cannot, or is replaced
 */
export async function takeTurn(run: Run, contextOf: ContextOf, parts: TurnParts): Promise<RunEvent | null> {
  // Runs that answer other runs would wait for those that wait for them.
  if (run.asked !== null || run.turn === 'admitted') return null;
  const id = runLaneId(run);
  const entry = { id, runId: run.id, sequence: parseInteractionId(run.messageId)?.sequence ?? 0 };
  const isRestart = await restarts(run, contextOf, parts);
  for (;;) {
    const refusal = await parts.lanes.enter(contextOf('enter lane'), entry, isRestart);
    const lane = await parts.lanes.current(contextOf('lane'), id);
    if (isReplaced(lane, entry)) return { type: 'RunCancelled.v1', data: {} };
    // Also those that another run has replaced, whose worker may have died before it ended them.
    for (const replaced of replacedRuns(lane)) {
      await parts.runs.update(contextOf(`replace ${replaced}`), replaced, decideCancel);
    }
    const current = lane?.current?.runId;
    if (current === run.id) return null;
    if (current === undefined || (await isOver(run.organizationId, current, parts))) {
      // Its turn was not passed on: the reactor that does this has given up.
      if (current !== undefined) await passTurn({ id, runId: current }, contextOf, parts);
      continue;
    }
    if (refusal === null) return { type: 'RunQueued.v1', data: {} };
    return { type: 'RunFailed.v1', data: { reason: 'queue_full', message: 'too many messages wait for this agent' } };
  }
}

/** Messages of agents take their turns, so that agents that answer each other end nothing that a user has asked for. */
async function restarts({ depth, channelId }: Run, contextOf: ContextOf, parts: TurnParts): Promise<boolean> {
  return depth === 0 && (await parts.runConcurrency(contextOf('concurrency'), channelId)) === 'restart';
}

async function isOver(organizationId: EntityId, id: EntityId, { runs }: TurnParts): Promise<boolean> {
  const run = await runs.inLog(organizationId, id);
  return run === null || (hasEnded(run) && run.isEndShown);
}

/**
 * A run leaves its lane, and the next one is admitted. Repeatable. One that was cancelled while a worker was about to enter
 * it is over already, and leaves as well.
 */
async function passTurn(
  { id, runId }: { readonly id: EntityId; readonly runId: EntityId },
  contextOf: ContextOf,
  parts: TurnParts,
): Promise<void> {
  const lane = await parts.lanes.leave(contextOf(`leave ${runId}`), id, runId);
  const next = lane?.current?.runId;
  if (lane === null || next === undefined) return;
  // The run continues in the name of its own request, not of the run before it.
  const context = { ...contextOf(`admit ${next}`), ...(await parts.runs.causeOf(next)) };
  await parts.runs.update(context, next, decideAdmit);
  if (await isOver(lane.organizationId, next, parts)) await passTurn({ id, runId: next }, contextOf, parts);
}

/** A run that has begun, or may begin, stays as it is. */
function decideAdmit({ phase, turn }: Run): Decision<RunEvent, never> {
  return phase === 'queued' && turn !== 'admitted' ? accept({ type: 'RunAdmitted.v1', data: {} }) : accept();
}

/** Passes the turns of runs on whose ends are shown in their channels. */
export function runTurns(parts: TurnParts) {
  return reactor<null, never, RunEvent>({
    name: 'run-turns',
    on: ['RunCompleted.v1', 'RunEndShown.v1'],
    triggers: runCodec,
    processOf: (_event, stream) => stream.slice(`${RUN}-`.length),
    // Commands with derived ids: there is nothing to record of the process itself.
    process: { category: 'run-turns', codec: defineEvents({}), fold: { initialState: null, evolve: () => null } },
    isEnded: () => false,
    async handle(_event, { id, organizationId, commandContext }) {
      const run = await parts.runs.inLog(organizationId, id);
      if (run === null || !run.isEndShown) return [];
      await tellEnd(run, commandContext('inbox'), parts.inboxes);
      if (run.asked === null) await passTurn({ id: runLaneId(run), runId: id }, commandContext, parts);
      return [];
    },
    giveUp: () => [],
  });
}
