import { answerText, type Run } from '../run/run.ts';
import { conflict, HttpError } from '#libs/platform/http/index.ts';

import type { PostedPrompt } from './prompt.post.ts';
import type { Ending } from './run-watch.ts';

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
 * @throws HttpError 409 for a run that was cancelled, and for an agent that was deactivated meanwhile; 502 for one that
 *   failed, or could not be started; 504 for one that took too long
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
