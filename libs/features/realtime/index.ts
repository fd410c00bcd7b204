/** Realtime: the frames of a channel over websockets and event streams, and the commands that sockets send. */
import type { ChannelAccess, Channels } from '#libs/features/channels/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import {
  type HttpApp,
  type LiveCommandType,
  type Principal,
  RedisIdempotencyStore,
} from '#libs/platform/http/index.ts';
import type { ChannelGrant, EventDescription } from '#libs/platform/live/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import { grantOf, SubscriberAccess, type AccessParts } from './access.ts';
import { LiveCommands } from './live-commands.ts';
import { asyncApiRoute, eventStreamRoutes, ticketRoutes } from './realtime.http.ts';
import { RealtimeNode } from './realtime-node.ts';
import { Tickets } from './tickets.ts';

export { grantOf, SubscriberAccess } from './access.ts';
export { clientFrame, PING, PONG, PROTOCOL, serverFrame } from './frames.ts';
export type { LiveCommand, LiveCommandOutcome } from './live-commands.ts';
export { eventStreamRoutes, openLiveChannel } from './realtime.http.ts';
export { RealtimeNode } from './realtime-node.ts';
export { TICKET_TTL_MS, Tickets } from './tickets.ts';
export { WebsocketAdmission } from './websocket-admission.ts';

interface RealtimeDeps {
  readonly channels: Pick<Channels, 'log' | 'usersOf' | 'values'>;
  readonly authenticator: AccessParts['keys'];
  readonly members: AccessParts['members'] & Pick<ChannelAccess, 'admits'>;
  /** Commands of other features. */
  readonly commands: readonly LiveCommandType[];
  readonly liveEvents: readonly EventDescription[];
  readonly publicEvents: readonly EventDescription[];
}

export function createRealtime(core: Core, deps: RealtimeDeps) {
  const { channels, liveEvents, publicEvents } = deps;
  const { announcements, redis, log } = core;
  const { authenticator: keys, members } = deps;
  const access = new SubscriberAccess({ keys, announcements, channels, members, log });
  /** See `AdmissionOptions`. API keys are not accepted: they are no secrets of browsers. */
  const grantOfMember = async (principal: Principal, channelId: EntityId): Promise<ChannelGrant | null> => {
    if (!principal.isMember || !principal.scopes.has('read')) return null;
    if (!(await members.admits(principal, channelId))) return null;
    return grantOf(principal, channelId, channels);
  };
  const commands = new LiveCommands({
    types: deps.commands,
    access,
    idempotency: new RedisIdempotencyStore(redis),
    log,
  });
  const parts = {
    log: channels.log,
    access,
    values: channels.values,
    commands,
  };
  const tickets = new Tickets(core);
  const protocol = { events: liveEvents, commands: commands.types, publicEvents };
  let node: RealtimeNode | undefined;
  /**
   * One per process: its websockets and its event streams share one subscription to each channel. The first call starts the
   * clock and the checks of access, which other roles must not start.
   */
  const theNode = (): RealtimeNode => (node ??= new RealtimeNode(core.live(), parts));
  const streamRoutes = (app: HttpApp): void => eventStreamRoutes(app, { node: theNode(), channels });
  return {
    ...parts,
    tickets,
    grantOfMember,
    protocol,
    node: theNode,
    streamRoutes,
    routes(app: HttpApp) {
      streamRoutes(app);
      asyncApiRoute(app, protocol);
      ticketRoutes(app, { tickets, channels });
    },
  };
}
