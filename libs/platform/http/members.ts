/** The access of members: declared at each route, and decided before its handler. */
import type { FastifyRequest } from 'fastify';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Principal } from './auth.ts';
import { forbidden, notFound } from './errors.ts';

type MemberScope = 'upload';

/** The access of members to a route. A route that declares nothing is closed to them. */
export interface MemberRoute {
  /**
   * The channel that a request is about; null is answered with 404. Absent, or undefined for a request: it concerns its
   * caller alone.
   */
  readonly channelOf?: (request: FastifyRequest) => EntityId | null | undefined | Promise<EntityId | null>;
  /** A scope of members that the route needs besides its own. */
  readonly scope?: MemberScope;
}

/**
 * Port: whether members may come into channels.
 *
 * Guarantees: decides on the log. False for a channel that does not exist, one of another organization, and one in which the
 * user of the member does not take part. Without a promise if that was read recently. Throws `store_unavailable` faults.
 */
export interface ChannelAccess {
  admits(member: Pick<Principal, 'organizationId' | 'principalId'>, channelId: EntityId): boolean | Promise<boolean>;
}

/** Of routes whose path names the channel as `:id`. */
export const OF_CHANNEL: MemberRoute = { channelOf: ({ params }) => (params as { readonly id: EntityId }).id };

/**
 * Of routes that concern the caller alone: what the handler shows and does is limited to what belongs to it. Nothing else
 * limits it, so each use needs a test with a member.
 */
export const OF_CALLER: MemberRoute = {};

/** @throws HttpError 403 for a route that is closed to the member */
export function requireOpen(member: Principal, route: MemberRoute | undefined): void {
  if (route === undefined) {
    throw forbidden('Members have no access to this: it concerns the organization as a whole', 'not_for_members');
  }
  if (route.scope !== undefined && !member.scopes.has(route.scope)) {
    throw forbidden(`The token lacks the scope ${route.scope}`, 'missing_scope');
  }
}

/**
 * The channel that a member's request is about, if it may come in; null if the request concerns its caller alone. Without a
 * promise if the decision needs no read.
 *
 * @throws HttpError 404
 */
export function admittedTo(
  request: FastifyRequest,
  { channelOf }: MemberRoute,
  access: ChannelAccess | undefined,
): EntityId | null | Promise<EntityId | null> {
  const channel = channelOf?.(request);
  if (channel instanceof Promise) return channel.then((found) => admittedToChannel(request, found, access));
  return channel === undefined ? null : admittedToChannel(request, channel, access);
}

function admittedToChannel(
  { principal }: FastifyRequest,
  channel: EntityId | null,
  access: ChannelAccess | undefined,
): EntityId | Promise<EntityId> {
  if (channel === null || access === undefined) throw notFound();
  const decide = (isAdmitted: boolean): EntityId => {
    if (!isAdmitted) throw notFound();
    return channel;
  };
  const decision = access.admits(principal, channel);
  return decision instanceof Promise ? decision.then(decide) : decide(decision);
}
