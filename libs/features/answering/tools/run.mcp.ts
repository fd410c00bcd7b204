import type { Agent, AgentTools, FoundServer, OfferedTool } from '#libs/features/agents/index.ts';
import type { Channels } from '#libs/features/channels/index.ts';
import { admitText } from '#libs/kernel/text.ts';
import { type LeftOutTool, ToolServerError } from '#libs/platform/mcp/index.ts';
import { asText } from '#libs/platform/model/index.ts';

import { messageOf } from '../run/run.conversation.ts';
import type { Run } from '../run/run.ts';
import { failure, type RunTool } from './run.tools.ts';

const MAX_RESULT_CHARS = 20_000;
/** Names of tools that are left out for one reason. */
const MAX_NAMES = 10;
const MAX_NAME = 100;

/** A server whose tools, or some of them, a step does not have. */
export interface MissedServer {
  readonly name: string;
  /** A sentence without a full stop. */
  readonly reason: string;
}

/** Makes the `_meta` of a call. @throws Fault `store_unavailable` */
type MetaOf = () => Promise<Readonly<Record<string, string | null>>>;

/**
 * Names the caller of a tool, for servers that authorize by it. Neither the model nor the user can change these values.
 * The user is null if the message that is answered is not of a user with an account.
 */
export function callerMeta({ queries }: Pick<Channels, 'queries'>, run: Run): MetaOf {
  return async () => ({
    'parley/organization_id': run.organizationId,
    'parley/agent_id': run.agentId,
    'parley/channel_id': run.channelId,
    'parley/run_id': run.id,
    'parley/message_id': run.messageId,
    'parley/user_id': (await messageOf(queries, run))?.userId ?? null,
  });
}

/**
 * The tools of servers that an agent names.
 *
 * @param call the name of the only tool that is needed; null: all
 * @throws the reason of `signal`
 */
export async function serverTools(
  agent: Agent,
  { call, signal, metaOf }: { readonly call: string | null; readonly signal: AbortSignal; readonly metaOf: MetaOf },
  agentTools: Pick<AgentTools, 'of' | 'call'>,
): Promise<{ readonly tools: readonly RunTool[]; readonly missed: readonly MissedServer[] }> {
  const found = await agentTools.of(agent, { call, signal });
  return {
    tools: found.flatMap((server) => server.tools.map((tool) => toolOf(server, tool, { agentTools, metaOf }))),
    missed: found.flatMap(({ name, failure: reason, leftOut }) => {
      if (reason !== null) return { name, reason };
      return leftOut.length === 0 ? [] : { name, reason: reasonOf(leftOut) };
    }),
  };
}

function toolOf(
  { name: server, access }: FoundServer,
  tool: OfferedTool,
  { agentTools, metaOf }: { readonly agentTools: Pick<AgentTools, 'call'>; readonly metaOf: MetaOf },
): RunTool {
  const { name, offeredAs, description, input: schema, isRepeatable } = tool;
  return {
    name: offeredAs,
    description: asText(description),
    input: { jsonSchema: schema },
    isRepeatable,
    displayText: () => `Calling ${admitText(name, MAX_NAME)} of ${server}`,
    async run(input, { signal }) {
      try {
        const { isError, text } = await agentTools.call(access, { name, input, schema, meta: await metaOf() }, signal);
        const result = { server, text: admitText(text, MAX_RESULT_CHARS), is_cut: text.length > MAX_RESULT_CHARS };
        return { status: isError ? 'failure' : 'success', result };
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ToolServerError)) throw error;
        const isUnknown = error.stage === 'called' && !isRepeatable;
        return failure(`${error.message}${isUnknown ? '; what came of the call is not known' : ''}`);
      }
    },
  };
}

/** Names the tools that are left out, by their reasons. */
function reasonOf(leftOut: readonly LeftOutTool[]): string {
  const byReason = Map.groupBy(leftOut, ({ reason }) => reason);
  const parts = [...byReason].map(([reason, tools]) => {
    const names = tools.flatMap(({ name }) => (name === null ? [] : [admitText(name, MAX_NAME)]));
    const shown = names.slice(0, MAX_NAMES).join(', ');
    const more = names.length > MAX_NAMES ? ` and ${names.length - MAX_NAMES} more` : '';
    return shown === '' ? reason : `${shown}${more}: ${reason}`;
  });
  return `some of its tools are left out (${parts.join('; ')})`;
}
