/**
 * Realtime: what happens in a channel, told to whoever listens. Here is what stands beside the sockets: the
 * frames of the protocol, tickets, and who may listen.
 */
import type { KeyAuthenticator, KeyChanges } from '#libs/features/keys/index.ts';
import type { DomainEvent } from '#libs/kernel/event.ts';
import { RedisIdempotencyStore } from '#libs/platform/http/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { LiveEventType, PublicEventType } from '#libs/platform/live/index.ts';
import type { Core, Module, ModuleInstance } from '#libs/platform/runtime/index.ts';

import { asyncApiRoute } from './asyncapi.ts';
import { StoredChannelLog } from './channel-log.ts';
import type { ChannelEvents } from './channel-log.ts';
import { eventStreamRoutes } from './event-stream.routes.ts';
import { KeyedListenerAccess } from './listener-access.ts';
import type { ListenedChannels } from './listener-access.ts';
import { CANCEL_RUN, FeatureLiveCommands } from './live-commands.ts';
import { JoinedLiveValues } from './live-values.ts';
import { publishedHeads } from './published-heads.ts';
import { RealtimeNode } from './realtime-node.ts';
import { RedisTickets } from './tickets.ts';
import { ticketRoutes } from './tickets.routes.ts';
import { Typing } from './typing.ts';

export { clientFrame, PING, PONG, serverFrame } from './frames.schemas.ts';
export { eventStreamRoutes } from './event-stream.routes.ts';
export { KeyedListenerAccess, listenerGrant } from './listener-access.ts';
export * from './protocol.ts';
export type { AccessChange, Grant, LiveCommand, LiveCommandOutcome } from './realtime.ports.ts';
export { RealtimeNode } from './realtime-node.ts';
export { RedisTickets, TICKET_TTL_MS } from './tickets.ts';
export { WebsocketAdmission } from './websocket-admission.ts';

interface RealtimeDeps<State, E extends DomainEvent> {
  readonly channelEvents: ChannelEvents<State, E>;
  readonly channels: ListenedChannels;
  readonly keys: { readonly authenticator: KeyAuthenticator; readonly changes: KeyChanges };
  /** Of all other modules. */
  readonly modules: readonly ModuleInstance[];
  readonly liveEvents: readonly LiveEventType[];
  readonly publicEvents: readonly PublicEventType[];
}

export const realtimeModule = {
  name: 'realtime',
  create<State, E extends DomainEvent>(core: Core, deps: RealtimeDeps<State, E>) {
    const { channelEvents, channels, keys, modules, liveEvents, publicEvents } = deps;
    const { store, history, redis, readModel, log } = core;
    const access = new KeyedListenerAccess({ ...keys, channels, log });
    const typing = new Typing(core);
    const commands = new FeatureLiveCommands({
      types: [...modules.flatMap(({ liveCommands }) => liveCommands ?? []), typing.command, CANCEL_RUN],
      access,
      idempotency: new RedisIdempotencyStore(redis),
      log,
    });
    const ports = {
      log: new StoredChannelLog(store, history, channelEvents),
      heads: publishedHeads(readModel, channelEvents.projection.category),
      access,
      values: new JoinedLiveValues([...modules.flatMap(({ liveValues }) => liveValues ?? []), typing]),
      commands,
    };
    const tickets = new RedisTickets(core);
    const protocol = { events: liveEvents, commands: commands.types, publicEvents };
    let node: RealtimeNode | undefined;
    /** One per process: its websockets and its event streams share one subscription to each channel. */
    const theNode = (): RealtimeNode => (node ??= new RealtimeNode(core, ports));
    const streamRoutes = (app: HttpApp): void => eventStreamRoutes(app, { node: theNode(), channels });
    return {
      ...ports,
      tickets,
      protocol,
      node: theNode,
      streamRoutes,
      routes(app: HttpApp) {
        streamRoutes(app);
        asyncApiRoute(app, protocol);
        ticketRoutes(app, { tickets, channels });
      },
    };
  },
} satisfies Module;
