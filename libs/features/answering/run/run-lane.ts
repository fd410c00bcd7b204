/*
 * Event names and shapes are the storage format: written events stay in the log forever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import { accept, type Decision, type Fold, refuse } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import { derivedId, type EntityId } from '#libs/kernel/ids.ts';
import { defineEvents, type EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `runlane-<id>`: the runs of one agent in one channel, one after another. */
export const RUN_LANE = 'runlane';

/** Part of the storage format. */
export function runLaneId({
  channelId,
  agentId,
}: {
  readonly channelId: EntityId;
  readonly agentId: EntityId;
}): EntityId {
  return derivedId(channelId, `runs of ${agentId}`);
}

export const runLaneCodec = defineEvents({
  /** `id`: of the lane. `sequence`: of the message that the run answers. */
  'RunEntered.v1': z.object({ id: z.string(), runId: z.string(), sequence: z.int().min(0) }),
  /** The runs that answer messages before this sequence end unfinished, whether they have entered or not. */
  'EarlierRunsReplaced.v1': z.object({ sequence: z.int().min(0) }),
  'RunLeft.v1': z.object({ runId: z.string() }),
});

export type RunLaneEvent = EventOf<typeof runLaneCodec>;

interface Entry {
  readonly runId: EntityId;
  readonly sequence: number;
}

export interface RunLane extends EntityState {
  /** The run that is admitted. */
  readonly current: Entry | null;
  /** In the order of their messages. */
  readonly waiting: readonly Entry[];
  /** Sequence of the last message whose run has replaced earlier ones. */
  readonly replacedBefore: number;
}

/** `null` until the first run enters. */
export type RunLaneState = RunLane | null;

/** Runs that wait at the same time. */
export const MAX_WAITING_RUNS = 32;

export const runLaneFold: Fold<RunLaneState, RunLaneEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'RunEntered.v1') {
      const { id, ...entry } = event.data;
      const lane = state ?? { id, ...createdBy(event), current: null, waiting: [], replacedBefore: 0 };
      const changed = { ...lane, ...changedBy(event) };
      if (lane.current === null) return { ...changed, current: entry };
      return { ...changed, waiting: [...lane.waiting, entry].toSorted((one, other) => one.sequence - other.sequence) };
    }
    if (state === null) return state;
    const changed = { ...state, ...changedBy(event) };
    if (event.type === 'EarlierRunsReplaced.v1') {
      return { ...changed, replacedBefore: Math.max(state.replacedBefore, event.data.sequence) };
    }
    const { runId } = event.data;
    if (state.current?.runId !== runId) {
      return { ...changed, waiting: state.waiting.filter((one) => one.runId !== runId) };
    }
    const [current = null, ...waiting] = state.waiting;
    return { ...changed, current, waiting };
  },
};

/** @param isRestart whether the run replaces those that answer earlier messages; decided once, by the first attempt */
export function decideEnter(
  state: RunLaneState,
  entry: { readonly id: EntityId } & Entry,
  isRestart: boolean,
): Decision<RunLaneEvent, { readonly reason: 'full' | 'replaced' }> {
  if (holds(state, entry.runId)) return accept();
  const { sequence } = entry;
  if (isReplaced(state, entry)) return refuse({ reason: 'replaced' });
  const replacedBefore = isRestart ? sequence : (state?.replacedBefore ?? 0);
  // Runs that are replaced leave soon, and must not keep the message out that replaces them.
  const waiting = state?.waiting.filter((one) => one.sequence >= replacedBefore) ?? [];
  if (waiting.length >= MAX_WAITING_RUNS) return refuse({ reason: 'full' });
  const events: RunLaneEvent[] = [{ type: 'RunEntered.v1', data: entry }];
  if (isRestart) events.push({ type: 'EarlierRunsReplaced.v1', data: { sequence } });
  return accept(...events);
}

/** Whether a later message has ended the run. */
export function isReplaced(state: RunLaneState, { sequence }: Pick<Entry, 'sequence'>): boolean {
  return state !== null && sequence < state.replacedBefore;
}

/** The runs that a later message has ended and that have not left yet. */
export function replacedRuns(state: RunLaneState): readonly EntityId[] {
  const entries = state === null ? [] : [...(state.current === null ? [] : [state.current]), ...state.waiting];
  return entries.filter((one) => isReplaced(state, one)).map(({ runId }) => runId);
}

export function decideLeave(state: RunLaneState, runId: EntityId): Decision<RunLaneEvent, never> {
  return holds(state, runId) ? accept({ type: 'RunLeft.v1', data: { runId } }) : accept();
}

function holds(state: RunLaneState, runId: EntityId): boolean {
  return state?.current?.runId === runId || state?.waiting.some((one) => one.runId === runId) === true;
}
