import type { Agent } from '#libs/features/agents/index.ts';

import type { Answering } from '../context.ts';
import { ChannelRefusal, type StepOfRun } from '../run/run.channel.ts';
import type { NextStep } from '../run/run.next.ts';
import { overridesOf } from '../run/run.prompt.ts';
import type { Run, RunEvent } from '../run/run.ts';
import { callerMeta, type MissedServer, serverTools } from './run.mcp.ts';
import { mentionTool } from './run.mentions.ts';
import { askTool } from './run.questions.ts';
import {
  ASK_TOOL,
  type Asks,
  failure,
  MENTION_TOOL,
  readPageTool,
  type RunTool,
  searchTool,
  type ToolOutcome,
} from './run.tools.ts';

export interface Toolset {
  readonly tools: readonly RunTool[];
  readonly missed: readonly MissedServer[];
}

interface Step {
  /** Name of the only tool that the step needs; null: all. */
  readonly call: string | null;
  readonly signal: AbortSignal;
}

/**
 * The tools that an agent has in a run: those of its graph, its features and its servers, but none that its own list
 * leaves out. Extractive answers only search.
 *
 * @throws Fault `store_unavailable`; the reason of `signal`
 */
export async function toolsOf(agent: Agent, run: Run, { call, signal }: Step, answering: Answering): Promise<Toolset> {
  const { model } = answering;
  const { general_web_search: mayRead, general_agent_search: mayAsk } = agent.features;
  const offers = (name: string) => mayAsk && model !== null && (call === null || call === name);
  const mention = offers(MENTION_TOOL) ? await mentionTool(run, answering) : null;
  const remote =
    model === null
      ? { tools: [], missed: [] }
      : await serverTools(agent, { call, signal, metaOf: callerMeta(answering.channels, run) }, answering.agentTools);
  const all = [
    ...(agent.knowledgeGraph === null ? [] : [searchTool(answering)]),
    ...(mayRead && overridesOf(agent, run).mayReadPages ? [readPageTool(answering)] : []),
    ...(offers(ASK_TOOL) ? [await askTool(run, answering)] : []),
    ...(mention === null ? [] : [mention]),
    ...remote.tools,
  ];
  return { ...remote, tools: all.filter(({ name }) => agent.tools === null || agent.tools.includes(name)) };
}

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
  await channel.postCall(call, { tool_args: call.input, display_text: tool?.displayText(call.input) ?? null });
  const answer = run.question?.callId === call.id ? run.question.answer : null;
  const outcome = answer ?? (await outcomeOf());
  if ('asks' in outcome) return { type: 'QuestionAsked.v1', data: { step, callId: call.id, ...outcome.asks } };
  await channel.postResult(call, { tool_result: outcome.result, status: outcome.status });
  return { type: 'ToolStepFinished.v1', data: { step, callId: call.id, ...outcome } };

  async function outcomeOf(): Promise<ToolOutcome | Asks> {
    if (call.problem !== null) return failure(call.problem);
    if (wasStarted && tool?.isRepeatable !== true) return failure(UNFINISHED);
    if (tool === undefined) return failure(missed[0]?.reason ?? 'the agent has no such tool');
    let updates = 0;
    const update = async (text: string) => {
      try {
        await channel.update(call, (updates += 1), { kind: 'string', text });
      } catch (error) {
        // The call runs all the same.
        if (!(error instanceof ChannelRefusal)) throw error;
      }
    };
    await update(tool.displayText(call.input));
    const { organizationId } = run;
    const use = { organizationId, agent, callId: call.id, signal: process.signal, update };
    const context = process.commandContext(call.id);
    return tool.run(call.input, { ...use, context, idempotencyKey: process.idempotencyKey(call.id) });
  }
}
