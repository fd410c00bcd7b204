/** Input and errors of requests and socket commands about reactions. */
import { type Caller, UNAUTHENTICATED } from '#libs/kernel/acting.ts';
import { unreachable } from '#libs/kernel/decider.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { conflict, forbidden, invalid, notFound, type Principal, requireMayActAs } from '#libs/platform/http/index.ts';

import { MAX_MARKS, MAX_WITHDRAWN, type ReactionRejection, type Reactor } from './reaction.ts';
import type { Directories } from '../channel/channel.requests.ts';

export function reactionError({ reason }: ReactionRejection): Error {
  switch (reason) {
    case 'not_found':
      return notFound();
    case 'archived':
      return conflict('The channel is archived', 'archived');
    case 'too_many_reactions':
      return conflict(
        `An interaction takes ${MAX_MARKS} reactions and read receipts, and ${MAX_WITHDRAWN} that are taken back`,
        'too_many_reactions',
      );
    case 'not_a_user_message':
      return conflict('Read receipts belong to messages of users', 'not_a_user_message');
    case 'not_the_sender':
      return forbidden('Only the user who sent the message can dismiss its prompt', 'not_the_sender');
    default:
      return unreachable(reason);
  }
}

/**
 * The user or agent that reacts, with its display name.
 *
 * @throws HttpError 403 for a user without the scope `impersonate` that reacts as an agent
 * @throws ValidationFailure 422 for a service without an `agent_id`
 */
export async function namedReactor(
  principal: Caller & Pick<Principal, 'organizationId'>,
  input: { readonly agent_id?: EntityId | null | undefined; readonly agent_name?: string | null | undefined },
  { users }: Pick<Directories, 'users'>,
): Promise<Reactor> {
  const { type, id } = reactorOf(principal, 'body', input.agent_id);
  const name = type === 'agent' ? input.agent_name : (await users.user(principal.organizationId, id))?.displayName;
  return { type, id, name: name || null };
}

/** As {@link namedReactor}, without the name. */
export function reactorOf(
  principal: Caller,
  where: 'body' | 'query',
  agentId: EntityId | null | undefined,
): Omit<Reactor, 'name'> {
  if (typeof agentId === 'string') {
    requireMayActAs(principal, UNAUTHENTICATED);
    return { type: 'agent', id: agentId };
  }
  if (principal.principalType === 'user') return { type: 'user', id: principal.principalId };
  throw invalid([where, 'agent_id'], 'a service reacts for an agent only', agentId ?? null);
}
