import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { LogFeed } from '#libs/platform/eventstore/index.ts';
import type { ProjectionState, Projector } from '#libs/platform/readmodel/index.ts';

import { ProjectionLoop } from './projection-loop.ts';

/** How far a rebuild has come. `fraction` is that of the log's positions, 0 to 1. */
interface RebuildProgress {
  readonly events: number;
  readonly fraction: number;
  readonly problem: string | null;
}

interface RebuildParts {
  readonly feed: LogFeed;
  readonly state: ProjectionState;
  readonly projector: Projector;
}

export interface RebuildOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: RebuildProgress) => void;
  /** Events applied at a time. */
  readonly maxBatch?: number;
  /** Categories to rebuild; all by default. The others stay as they are, and answer meanwhile. */
  readonly only?: readonly string[] | undefined;
}

/**
 * Deletes the read models and folds the log again. Safe beside a running system: reads of single entities stay correct,
 * lists answer 503 until it is done. An interrupted rebuild is finished by the next projector.
 *
 * @returns how many events were folded
 * @throws `Fault` when a store is away at the start (nothing is deleted while the log is); `Error` when an
 *   event cannot be applied
 */
export async function rebuild({ feed, ...all }: RebuildParts, options: RebuildOptions): Promise<number> {
  const { only } = options;
  const state = only === undefined ? all.state : all.state.only(only);
  const projector = only === undefined ? all.projector : all.projector.only(only);
  // First: without a log to fold again, nothing must be deleted.
  const head = await feed.head();
  await state.clear();
  const done = new AbortController();
  let corrupt: unknown;
  const loop = new ProjectionLoop({
    feed,
    state,
    projector,
    fromStart: true,
    ...(options.maxBatch !== undefined && { maxBatch: options.maxBatch }),
    onProblem: (error, progress) => {
      if (progress.phase === 'halted') corrupt = error;
    },
    onProgress: ({ phase, position, eventsSeen, problem }) => {
      const fraction = phase === 'live' ? 1 : fractionOf(position, head);
      options.onProgress?.({ events: eventsSeen, fraction, problem });
      if (phase === 'live') done.abort();
    },
  });
  await loop.run(AbortSignal.any([options.signal, done.signal]));
  if (corrupt !== undefined) throw corrupt;
  options.signal.throwIfAborted();
  return loop.progress.eventsSeen;
}

function fractionOf(position: GlobalPosition | null, head: GlobalPosition | null): number {
  if (position === null || head === null || head.commit === 0n) return 0;
  return Math.min(1, Number((position.commit * 10_000n) / head.commit) / 10_000);
}
