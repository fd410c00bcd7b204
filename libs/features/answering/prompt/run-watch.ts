import type { EntityId } from '#libs/kernel/ids.ts';
import { endsOf } from '#libs/platform/live/index.ts';
import { entityKeys, type ReadModel } from '#libs/platform/readmodel/index.ts';

import type { Prompting } from '../context.ts';
import type { Invocation, InvocationState } from '../decide/invocation.ts';
import { invocationEntity } from '../decide/invocation.read.ts';
import { hasEnded, type Run, type RunState } from '../run/run.ts';
import { runEntity } from '../run/run.read.ts';

/** The end of a prompt: its run has ended, or the agent was not invoked. */
export type Ending =
  { readonly kind: 'ended'; readonly run: Run } | { readonly kind: 'withheld'; readonly reason: Invocation['reason'] };

interface Prompted {
  readonly organizationId: EntityId;
  /** Of the run, and of the decision that precedes it. */
  readonly runId: EntityId;
}

/**
 * Waits until the run of a prompt has ended and its channel shows that, or the agent is not invoked. The last frames of the
 * run and of the decision wake it; the log decides.
 *
 * @throws `Fault` `store_unavailable`; the reason of `signal` once it aborts
 */
export async function endOf(
  prompted: Prompted,
  {
    runs,
    invocations,
    topics,
    looks,
    readModel,
  }: Pick<Prompting, 'invocations' | 'looks' | 'readModel' | 'runs' | 'topics'>,
  signal: AbortSignal,
): Promise<Ending> {
  const { organizationId, runId: id } = prompted;
  const inLog = async (): Promise<Ending | null> => {
    const run = await runs.inLog(organizationId, id);
    return endingOf(run, run === null ? await invocations.decision(id) : null);
  };
  const watched = [runEntity, invocationEntity].map(({ category }) => ({ category, organizationId, id }));
  let isFirst = true;
  for await (const _ of endsOf(topics, watched, signal)) {
    // Usually the prompt has only just begun, which Redis says at a fraction of the cost of the log.
    const mayHaveEnded = !isFirst || (await mayHaveEndedIn(readModel, prompted));
    isFirst = false;
    const ending = mayHaveEnded ? await looks.run(inLog, { group: organizationId, signal }) : null;
    if (ending !== null) return ending;
  }
  throw signal.reason;
}

function endingOf(run: RunState, decision: InvocationState): Ending | null {
  if (run !== null) return hasEnded(run) && run.isEndShown ? { kind: 'ended', run } : null;
  return decision === null || decision.runId !== null ? null : { kind: 'withheld', reason: decision.reason };
}

/** Redis publishes what it applies: without an end there, the last frame is still to come. */
async function mayHaveEndedIn(
  readModel: Pick<ReadModel, 'snapshots'>,
  { organizationId, runId }: Prompted,
): Promise<boolean> {
  const wanted = [runEntity, invocationEntity].map(({ projection }) => ({
    projection,
    keys: entityKeys(projection, organizationId, runId),
  }));
  const found = await readModel.snapshots(wanted).catch(() => null);
  if (found === null) return true;
  // The folds of these types made the snapshots, under keys with the versions of their shapes.
  const [run = null, decision = null] = found.map((snapshot) => snapshot?.state) as [RunState?, InvocationState?];
  return endingOf(run, decision) !== null;
}
