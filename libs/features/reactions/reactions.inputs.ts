import type { EntityId } from '#libs/kernel/ids.ts';
import { invalid, requireMayActAs, UNAUTHENTICATED } from '#libs/platform/http/index.ts';
import type { Caller, Principal } from '#libs/platform/http/index.ts';

import type { Reactor } from './reaction.events.ts';

/** Port: what users are called. */
export interface ReactorNames {
  /** The display name of a user, or null if the organization has no such user (any more). */
  nameOf(organizationId: EntityId, userId: EntityId): Promise<string | null>;
}

/**
 * Who reacts, with the name that others are shown.
 * @throws HttpError 403 for a user without the scope `impersonate` that reacts for an agent
 * @throws ValidationFailure 422 for a service that does not say for which agent it reacts
 */
export async function namedReactor(
  principal: Caller & Pick<Principal, 'organizationId'>,
  input: { readonly agent_id?: EntityId | null | undefined; readonly agent_name?: string | null | undefined },
  { nameOf }: ReactorNames,
): Promise<Reactor> {
  const { type, id } = reactorOf(principal, 'body', input.agent_id);
  const name = type === 'agent' ? (input.agent_name ?? null) : await nameOf(principal.organizationId, id);
  return { type, id, name: name || null };
}

/** The same without the name. @throws as above */
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
