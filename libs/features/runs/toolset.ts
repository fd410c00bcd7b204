import type { CommandContext } from '#libs/platform/commands/index.ts';

import type { RunAgent } from './run.agent.ts';
import type { RunParts } from './run.parts.ts';
import { overridesOf } from './run.prompt.ts';
import { askTool } from './run.questions.ts';
import { readPageTool, searchTool } from './run.tools.ts';
import type { RunTool } from './run.tools.ts';
import type { Run } from './run.ts';

/**
 * The tools that an agent has in a run: those of its graph and its features, but none that its own list leaves out.
 * Extractive answers only search.
 *
 * @throws Fault `store_unavailable`
 */
export async function toolsOf(
  agent: RunAgent,
  run: Run,
  context: CommandContext,
  { model, tools, questions }: Pick<RunParts, 'model' | 'tools' | 'questions'>,
): Promise<RunTool[]> {
  const { general_web_search: mayRead, general_agent_search: mayAsk } = agent.features;
  const all = [
    ...(agent.knowledgeGraph === null ? [] : [searchTool(tools)]),
    ...(mayRead && overridesOf(agent, run).mayReadPages ? [readPageTool(tools)] : []),
    ...(mayAsk && model !== null ? [await askTool(run, context, questions)] : []),
  ];
  return all.filter(({ name }) => agent.tools === null || agent.tools.includes(name));
}
