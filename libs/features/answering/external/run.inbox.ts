import type { DeliveredInvocation, EndedInvocation } from '#libs/features/agents/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';

import { EXTERNAL, type Run } from '../run/run.ts';

/** Port: what external agents are to answer. */
export interface RunInboxes {
  /** Once for each run. @returns false if the agent has too many to answer */
  deliver(context: CommandContext, agentId: EntityId, invocation: DeliveredInvocation): Promise<boolean>;
  /** Once for each run that was delivered; nothing for others. */
  end(context: CommandContext, ended: EndedInvocation): Promise<void>;
}

/** Tells an external agent that a run of it has ended. */
export async function tellEnd(
  { id: runId, agentId, phase, failure, claim }: Run,
  context: CommandContext,
  inboxes: Pick<RunInboxes, 'end'>,
): Promise<void> {
  if (claim?.model.kind !== EXTERNAL || phase === 'queued' || phase === 'running') return;
  await inboxes.end(context, { runId, agentId, status: phase, reason: failure?.reason ?? null });
}
