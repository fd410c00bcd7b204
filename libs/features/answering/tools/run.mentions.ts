import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';

import type { Answering } from '../context.ts';
import type { Run } from '../run/run.ts';
import { agentsBeside, isNamed, lineOf, mostAt } from './run.questions.ts';
import { failure, MENTION_TOOL, type RunTool } from './run.tools.ts';

const mentionInput = z.object({ agent: z.string().trim().min(1).max(256).describe('Id or name of the agent') });
const mentioned = z.object({ agent: z.object({ id: z.string() }) });

/**
 * Mentions another agent of the channel in the response, which invokes that agent once the response is complete. Null if
 * there is none, and for the answer to another agent, which no channel shows.
 */
export async function mentionTool(
  run: Run,
  answering: Pick<Answering, 'agents' | 'channels'>,
): Promise<RunTool | null> {
  const others = run.asked === null ? await agentsBeside(run, answering) : [];
  if (others.length === 0) return null;
  const about =
    'Hands over to another agent of this channel: mentions it in your response, which it reads and answers when you have finished. Agents, with their ids:';
  return {
    name: MENTION_TOOL,
    description: [about, ...others.map(lineOf)].join('\n'),
    input: mentionInput,
    isRepeatable: true,
    displayText: ({ agent }) => `Mentioning ${String(agent)}`,
    async run(input) {
      const { agent: named } = mentionInput.parse(input);
      const found = others.filter((one) => one.id === named || isNamed(one, named));
      const [agent] = found;
      if (agent === undefined) return failure('no other agent of the channel has this name or id');
      if (found.length > 1) return failure('several agents have this name: give the id of one');
      const known = mentionsOf(run);
      const most = mostAt(run);
      if (known.length >= most && !known.includes(agent.id)) {
        return failure(`${known.length} agents are mentioned in this run, and the limit is ${most}`);
      }
      return { status: 'success', result: { agent: { id: agent.id, name: agent.name } } };
    },
  };
}

/** The agents that the run has mentioned, once each. */
function mentionsOf({ steps }: Pick<Run, 'steps'>): readonly EntityId[] {
  const ids = steps.flatMap((one) => {
    if (one.kind !== 'tool' || one.name !== MENTION_TOOL || one.status !== 'success') return [];
    return mentioned.safeParse(one.result).data?.agent.id ?? [];
  });
  return [...new Set(ids)];
}

/**
 * The configuration of a response that mentions agents: that of the message, which holds for the whole turn, with other
 * mentions. Null without any.
 */
export function configOfResponse(run: Pick<Run, 'steps' | 'invocationConfig'>): Record<string, unknown> | null {
  const ids = mentionsOf(run);
  if (ids.length === 0) return null;
  const { private_mention_requests: _ofMessage, ...config } = run.invocationConfig ?? {};
  return { ...config, mentions: ids.map((id) => ({ type: 'agent', id, identifier: id, identifier_type: 'uuid' })) };
}
