import type { CommandContext } from '#libs/platform/commands/index.ts';

import type { RunAgent } from '../run/run.agent.ts';
import type { RunParts } from '../run/run.parts.ts';
import { overridesOf } from '../run/run.prompt.ts';
import { type MissedServer, serverTools } from './run.mcp.ts';
import { mentionTool } from './run.mentions.ts';
import { askTool } from './run.questions.ts';
import { ASK_TOOL, MENTION_TOOL, readPageTool, type RunTool, searchTool } from './run.tools.ts';
import type { Run } from '../run/run.ts';

export interface Toolset {
  readonly tools: readonly RunTool[];
  readonly missed: readonly MissedServer[];
}

interface Step {
  readonly context: CommandContext;
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
export async function toolsOf(
  agent: RunAgent,
  run: Run,
  { context, call, signal }: Step,
  { model, tools, questions, agentTools }: Pick<RunParts, 'model' | 'tools' | 'questions' | 'agentTools'>,
): Promise<Toolset> {
  const { general_web_search: mayRead, general_agent_search: mayAsk } = agent.features;
  const offers = (name: string) => mayAsk && model !== null && (call === null || call === name);
  const mention = offers(MENTION_TOOL) ? await mentionTool(run, context, questions) : null;
  const remote = model === null ? { tools: [], missed: [] } : await serverTools(agent, { call, signal }, agentTools);
  const all = [
    ...(agent.knowledgeGraph === null ? [] : [searchTool(tools)]),
    ...(mayRead && overridesOf(agent, run).mayReadPages ? [readPageTool(tools)] : []),
    ...(offers(ASK_TOOL) ? [await askTool(run, context, questions)] : []),
    ...(mention === null ? [] : [mention]),
    ...remote.tools,
  ];
  return { ...remote, tools: all.filter(({ name }) => agent.tools === null || agent.tools.includes(name)) };
}
