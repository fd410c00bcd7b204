import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityCore } from '#libs/platform/entity/index.ts';

import {
  decideEnter,
  decideLeave,
  RUN_LANE,
  runLaneCodec,
  type RunLaneEvent,
  runLaneFold,
  type RunLaneState,
} from './run-lane.ts';

type NoFacets = Record<never, never>;

export const runLaneEntity = entity<RunLaneState, RunLaneEvent, NoFacets>({
  category: RUN_LANE,
  version: 3,
  codec: runLaneCodec,
  fold: runLaneFold,
  resource: ({ id }) => ({ id }),
  facets: () => ({}),
  isListed: false,
});

/** The lanes of runs. All methods throw the faults of commands, and may be repeated. */
export class RunLanes extends Entities<RunLaneState, RunLaneEvent, NoFacets> {
  constructor(core: EntityCore) {
    super(runLaneEntity, core);
  }

  /**
   * @returns the lane afterwards, and why the run cannot enter: too many wait already, or it answers a message that a later
   *   one has replaced
   */
  async enter(
    context: CommandContext,
    entry: { readonly id: EntityId; readonly runId: EntityId; readonly sequence: number },
    isRestart: boolean,
  ): Promise<{ readonly lane: RunLaneState; readonly refusal: 'full' | 'replaced' | null }> {
    let lane: RunLaneState = null;
    const result = await this.run(context, entry.id, (state) => {
      lane = state;
      return decideEnter(state, entry, isRestart);
    });
    return result.ok ? { lane: result.entity, refusal: null } : { lane, refusal: result.rejection.reason };
  }

  /** @returns the lane afterwards */
  leave(context: CommandContext, id: EntityId, runId: EntityId): Promise<RunLaneState> {
    return this.current(context, id, (state) => decideLeave(state, runId));
  }
}
