import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity } from '#libs/platform/entity/index.ts';
import type { EntityCore } from '#libs/platform/entity/index.ts';

import { decideEnter, decideLeave, RUN_LANE, runLaneCodec, runLaneFold } from './run-lane.ts';
import type { RunLaneEvent, RunLaneState } from './run-lane.ts';

type NoFacets = Record<never, never>;

export const runLaneEntity = entity<RunLaneState, RunLaneEvent, NoFacets>({
  category: RUN_LANE,
  version: 1,
  codec: runLaneCodec,
  fold: runLaneFold,
  resource: ({ id }) => ({ id }),
  facets: () => ({}),
});

/** The turns of runs. All methods throw the faults of commands, and may be repeated. */
export class RunLanes extends Entities<RunLaneState, RunLaneEvent, NoFacets> {
  constructor(core: EntityCore) {
    super(runLaneEntity, core);
  }

  /** @returns false if too many runs wait already */
  async enter(
    context: CommandContext,
    entry: { readonly id: EntityId; readonly runId: EntityId; readonly sequence: number },
  ): Promise<boolean> {
    return (await this.run(context, entry.id, (state) => decideEnter(state, entry))).ok;
  }

  /** @returns the lane afterwards */
  leave(context: CommandContext, id: EntityId, runId: EntityId): Promise<RunLaneState> {
    return this.current(context, id, (state) => decideLeave(state, runId));
  }
}
