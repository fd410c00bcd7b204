import type { RunEvent } from './run.ts';
import type { StepOfRun } from './run.parts.ts';
import { type Asks, failure, type ToolOutcome } from '../tools/run.tools.ts';
import type { NextStep } from './run.next.ts';
import type { Toolset } from '../tools/toolset.ts';

const UNFINISHED = 'the call was started, and what came of it is not known; it was not made again';

/** Runs one tool call. A call that was started and not finished is only made again if the tool allows that. */
export async function runToolStep(
  { run, agent, process, channel }: StepOfRun,
  { step, call }: Extract<NextStep, { kind: 'tool' }>,
  { tools, missed }: Toolset,
): Promise<RunEvent> {
  const wasStarted = run.started?.step === step;
  if (!wasStarted) await process.recordIntent({ type: 'StepStarted.v1', data: { step, callId: call.id } });
  const tool = tools.find(({ name }) => name === call.name);
  const names = { tool_name: call.name, tool_call_id: channel.toolCallId(call.id) };
  await channel.post({
    role: 'tool_call',
    content: [
      { type: 'tool_call', ...names, tool_args: call.input, display_text: tool?.displayText(call.input) ?? null },
    ],
    name: `call ${call.id}`,
  });
  const answer = run.question?.callId === call.id ? run.question.answer : null;
  const outcome = answer ?? (await outcomeOf());
  if ('asks' in outcome) return { type: 'QuestionAsked.v1', data: { step, callId: call.id, ...outcome.asks } };
  await channel.post({
    role: 'tool_call_result',
    content: [
      { type: 'tool_call_result', ...names, tool_result: outcome.result, status: outcome.status, display_text: null },
    ],
    name: `result ${call.id}`,
    below: channel.spanOf(`call ${call.id}`),
  });
  return { type: 'ToolStepFinished.v1', data: { step, callId: call.id, ...outcome } };

  async function outcomeOf(): Promise<ToolOutcome | Asks> {
    if (call.problem !== null) return failure(call.problem);
    if (wasStarted && tool?.isRepeatable !== true) return failure(UNFINISHED);
    if (tool === undefined) return failure(missed[0]?.reason ?? 'the agent has no such tool');
    let updates = 0;
    const update = async (text: string) => channel.update(call, (updates += 1), text);
    await update(tool.displayText(call.input));
    const { organizationId } = run;
    const use = { organizationId, agent, callId: call.id, signal: process.signal, update };
    const context = process.commandContext(call.id);
    return tool.run(call.input, { ...use, context, idempotencyKey: process.idempotencyKey(call.id) });
  }
}
