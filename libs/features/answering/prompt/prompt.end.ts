import type { EntityId } from '#libs/kernel/ids.ts';
import { endsOf } from '#libs/platform/live/index.ts';
import { entityKeys, type ReadModel } from '#libs/platform/readmodel/index.ts';
import { conflict, HttpError } from '#libs/platform/http/index.ts';

import type { Prompting } from '../context.ts';
import type { Invocation, InvocationState } from '../decide/invocation.ts';
import { invocationEntity } from '../decide/invocation.read.ts';
import { answerText, hasEnded, type Run, type RunState } from '../run/run.ts';
import { runEntity } from '../run/run.read.ts';
import type { PostedPrompt } from './prompt.post.ts';

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
  { runs, invocations, topics, looks, readModel }: Prompting,
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

/** Reasons of failures by which a run did not end in time. */
const TIMEOUTS: ReadonlySet<string> = new Set(['model_timeout', 'deadline']);

/** The state of the run of a prompt, as its caller may know it. */
export type ShownIds = Readonly<Record<string, string>>;

export function idsOf({ runId, channelId }: PostedPrompt): ShownIds {
  return { run_id: runId, channel_id: channelId };
}

/**
 * The text that the agent has answered.
 *
 * @param shown members of errors
 * @throws HttpError 409 for a run that was cancelled, and for an agent that was deactivated meanwhile; 502 for a run
 *   that failed, or could not be started; 504 for a run that took too long
 */
export function answerOf(ending: Ending, shown: ShownIds): string {
  if (ending.kind === 'withheld') {
    if (ending.reason === 'inactive') throw deactivated();
    const members = { ...shown, reason: ending.reason };
    if (ending.reason === 'failed')
      throw new HttpError(502, 'not_invoked', 'The agent could not be invoked', {}, members);
    throw conflict('The agent was not invoked', 'not_invoked', {}, members);
  }
  const { run } = ending;
  if (run.phase === 'cancelled') throw conflict('The run was cancelled', 'run_cancelled', {}, shown);
  if (run.failure !== null) throw failed(run.failure, shown);
  return answerText(run);
}

/** The end of a prompt, for its stream. A run that failed or was cancelled may have said something. */
export function outcomeOf(ending: Ending, { runId: run_id }: Pick<PostedPrompt, 'runId'>): object {
  if (ending.kind === 'withheld') {
    const error = { reason: ending.reason, message: 'the agent was not invoked' };
    return { status: 'failed', message: '', run_id, error };
  }
  const { run } = ending;
  const error = run.failure && { reason: run.failure.reason, message: run.failure.message };
  return { status: run.phase, message: answerText(run), run_id, error };
}

export function deactivated(): HttpError {
  return conflict('The agent is deactivated', 'agent_deactivated');
}

function failed({ reason, message }: NonNullable<Run['failure']>, shown: ShownIds): HttpError {
  const status = TIMEOUTS.has(reason) ? 504 : 502;
  return new HttpError(status, 'run_failed', `The agent could not answer: ${message}`, {}, { ...shown, reason });
}
