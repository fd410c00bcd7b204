import { configOfResponse } from '../tools/run.mentions.ts';
import { sourcesOf } from '../tools/run.tools.ts';
import { ChannelRefusal, type RunInChannel, type RunPost, type StepOfRun } from './run.channel.ts';
import { finishOf, modelOf, type RunModel } from './run.summary.ts';
import { answerText, type CalledTool, type Run, type RunEvent } from './run.ts';

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
  const ref = open ?? (await channel.post(posted))?.ref ?? null;
  if (ref !== null) await channel.complete(ref, text, details);
  return { type: 'RunCompleted.v1', data: { responseId: ref && channel.idOf(ref) } };
}

/**
 * Every run ends in its channel, also one that was cancelled before it had begun. A partial answer is kept. The post that
 * ends a run without a response takes the place of the response: a worker that posts the response later finds this post
 * instead, which is complete. So nothing is left open, also by a worker that dies then.
 */
export async function showEnd(run: Run, channel: RunInChannel): Promise<void> {
  const { failure } = run;
  try {
    const open = await channel.openResponse();
    // A read model may lag: that there is no response is known once its place is taken.
    const posted = open === null ? await channel.post({ ...endOf(run), name: 'response' }) : null;
    const response = open ?? (posted?.contentRole === 'agent_response' ? posted.ref : null);
    if (response === null) return;
    const text = (await channel.draftOf(response)) || answerText(run);
    if (text === '') await channel.fail(response, failure?.message ?? CANCELLED);
    else await channel.complete(response, text, { metadata: metadataOfEnd(run) });
    if (failure !== null) await channel.post({ ...endOf(run), name: 'error' });
  } catch (error) {
    // Nothing can be shown in a channel that was archived. One with too many open interactions has fewer soon.
    if (!(error instanceof ChannelRefusal) || error.reason === 'too_many_open') throw error;
  }
}

/** Tool calls of a run that has ended, of which its channel may show no result. */
export function unfinishedCalls({ steps, openCalls, phase }: Run): readonly CalledTool[] {
  if (phase === 'completed') return openCalls;
  const finished = new Set(steps.flatMap((one) => (one.kind === 'tool' ? [one.callId] : [])));
  const made = steps.flatMap((one) => (one.kind === 'model' ? one.toolCalls : []));
  return [...made.filter(({ id, isOffered }) => isOffered !== false && !finished.has(id)), ...openCalls];
}

const CANCELLED = 'the run was cancelled';

/**
 * Ends the tool calls that the channel shows without a result: nothing else is going to. Also those of a run whose end is
 * shown by its response.
 */
export async function endCalls(run: Run, channel: RunInChannel): Promise<void> {
  const { phase, failure } = run;
  const why = failure?.message ?? (phase === 'cancelled' ? CANCELLED : 'the run ended without a result of the call');
  for (const call of unfinishedCalls(run)) {
    try {
      await channel.postResult(call, { tool_result: { error: why }, status: 'failure' });
    } catch (error) {
      // The call is not in the channel, or the channel takes nothing any longer.
      if (!(error instanceof ChannelRefusal) || error.reason === 'too_many_open') throw error;
    }
  }
}

/** Of an answer that ended before its model did: `finish_reason` says it. */
function metadataOfEnd(run: Run): Record<string, unknown> {
  const reason = run.failure === null ? 'cancelled' : 'failed';
  if (run.claim === null) return { run_id: run.id, finish_reason: reason };
  return { ...metadataOf(run, run.claim.model), finish_reason: reason };
}

/** The post for a run without a response: an error, or a response that fails. */
function endOf(run: Run): Pick<RunPost, 'role' | 'content' | 'complete' | 'metadata'> {
  const { failure } = run;
  if (failure === null) {
    return { role: 'agent_response', content: [], complete: false, metadata: metadataOfEnd(run) };
  }
  const content = [{ type: 'text', text: `The agent could not answer: ${failure.message}.` }];
  return { role: 'internal_error', content, metadata: { run_id: run.id, reason: failure.reason } };
}
