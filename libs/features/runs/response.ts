import { foldStream } from '#libs/platform/readmodel/index.ts';

import { ChannelRefusal } from './run.channel.ts';
import type { RunInChannel } from './run.channel.ts';
import type { RunParts, StepOfRun } from './run.parts.ts';
import { runEntity } from './run.read.ts';
import { configOfResponse } from './run.mentions.ts';
import { sourcesOf } from './run.sources.ts';
import { answerText, hasEnded } from './run.ts';
import { finishOf, modelOf } from './run.answer.ts';
import type { RunModel } from './run.answer.ts';
import type { Run, RunEvent } from './run.ts';

/**
 * The metadata of a response: what wrote it, why it ended, from which sources.
 *
 * @param requested the model that is asked, until one has answered
 */
export function metadataOf(run: Run, requested: RunModel): Record<string, unknown> {
  const { kind, name } = modelOf(run) ?? requested;
  return { run_id: run.id, model: { kind, name }, finish_reason: finishOf(run), sources: sourcesOf(run) };
}

export async function complete({ run, channel }: StepOfRun, requested: RunModel): Promise<RunEvent> {
  if (run.asked !== null) return { type: 'RunCompleted.v1', data: { responseId: null } };
  const text = answerText(run);
  const open = await channel.openResponse();
  const content = [{ type: 'text', text }];
  // An open response was posted without what the run has found and mentioned since.
  const details = { metadata: metadataOf(run, requested), invocationConfig: configOfResponse(run) };
  const posted = { role: 'agent_response', content, name: 'response', ...details } as const;
  // Posting is repeatable, but finds a response that was posted in the log only: a read model may lag.
  const ref = open ?? (await channel.post(posted));
  if (ref !== null) await channel.complete(ref, text, details);
  return { type: 'RunCompleted.v1', data: { responseId: ref && channel.idOf(ref) } };
}

/** A partial answer is kept. */
export async function showEnd(run: Run, channel: RunInChannel): Promise<void> {
  const message = run.failure === null ? 'the run was cancelled' : run.failure.message;
  try {
    const response = await channel.openResponse();
    if (response !== null) {
      const text = (await channel.draftOf(response)) || answerText(run);
      if (text === '') await channel.fail(response, message);
      else await channel.complete(response, text);
    }
    if (run.failure === null) return;
    const content = [{ type: 'text', text: `The agent could not answer: ${message}.` }];
    const metadata = { run_id: run.id, reason: run.failure.reason };
    await channel.post({ role: 'internal_error', content, name: 'error', metadata });
  } catch (error) {
    // Nothing can be shown in a channel that was archived.
    if (!(error instanceof ChannelRefusal)) throw error;
  }
}

/** A response that was posted after its run had ended must not stay incomplete. */
export async function endLateResponse(
  { run, channel }: Pick<StepOfRun, 'run' | 'channel'>,
  store: RunParts['store'],
): Promise<void> {
  const current = await foldStream(store, runEntity.projection, run.id);
  if (current !== null && hasEnded(current)) await showEnd(current, channel);
}
