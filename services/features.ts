/*
 * The one place where the features are put together: what each role serves, projects and runs is listed
 * here, by hand, so that the way of a request can be read.
 */
import {
  CHANNEL,
  channelBefore,
  ChannelCommands,
  channelEventTypes,
  channelFrame,
  ChannelQueries,
  channelProjection,
  channelRoutes,
  participantRoutes,
} from '#libs/features/channels/index.ts';
import {
  draftRoutes,
  Drafts,
  InteractionCommands,
  interactionEventTypes,
  interactionFrame,
  interactionLiveCommands,
  InteractionQueries,
  InteractionTreeIndex,
  interactionRoutes,
  interactionsOfChannel,
  interactionsProjection,
  openBefore,
  openSequences,
  ToolCallUpdates,
} from '#libs/features/interactions/index.ts';
import {
  KeyAuthenticator,
  KeyChanges,
  KeyCommands,
  KeyDirectory,
  KeyQueries,
  keyProjection,
  keyRoutes,
} from '#libs/features/keys/index.ts';
import { organizationEntity, organizationRoutes, Organizations } from '#libs/features/organizations/index.ts';
import {
  ReactionAnnotations,
  ReactionCommands,
  reactionFrame,
  reactionEventTypes,
  reactionLiveCommands,
  reactionRoutes,
  reactionsProjection,
} from '#libs/features/reactions/index.ts';
import { userEntity, userRoutes, Users } from '#libs/features/users/index.ts';
import { CommandHandler, runnerOfEvents, runnerOfPart, withPreconditions } from '#libs/platform/commands/index.ts';
import type { CommandHandlerOptions, CommandStores } from '#libs/platform/commands/index.ts';
import {
  asyncApiRoute,
  CANCEL_RUN,
  eventStreamRoutes,
  FeatureLiveCommands,
  JoinedLiveValues,
  KeyedListenerAccess,
  RedisTickets,
  StoredChannelLog,
  ticketRoutes,
  Typing,
} from '#libs/features/realtime/index.ts';
import type {
  DescribedProtocol,
  LiveValues,
  RealtimeNode,
  RealtimePorts,
  Tickets,
} from '#libs/features/realtime/index.ts';
import type { Authenticator, HttpApp, LiveCommandType } from '#libs/platform/http/index.ts';
import {
  CollectionReader,
  composeProjections,
  EntityReader,
  HistoryReader,
  ProjectionState,
  Projector,
  withFrames,
  withHistory,
} from '#libs/platform/readmodel/index.ts';
import type { AnyProjection } from '#libs/platform/readmodel/index.ts';
import type { EntityCore } from '#libs/platform/entity/index.ts';
import { RedisIdempotencyStore } from '#libs/platform/http/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { publicEventTypes } from './public-events.ts';

/**
 * Channels, interactions and reactions write in the same streams: one revision orders all that happens in a channel.
 * What is kept of the past is what `ChannelQueries` and `InteractionQueries` start from.
 */
const channelEvents = composeProjections(CHANNEL, {
  channel: withFrames(channelProjection, channelFrame),
  interactions: withFrames(interactionsProjection, interactionFrame),
  reactions: withFrames(reactionsProjection, reactionFrame),
});
export const channelStream = withHistory(channelEvents, {
  channel: (state) => state.channel,
  open: (state) => openSequences(state.interactions),
});

/** Every kind of stream that becomes a read model. */
const PROJECTIONS: readonly AnyProjection[] = [
  channelStream,
  organizationEntity.projection,
  userEntity.projection,
  keyProjection,
];

/** What brings events into Redis, and reads them from there. */
export interface ReadModels {
  readonly projector: Projector;
  readonly reader: EntityReader;
  readonly state: ProjectionState;
}

/** How many events of types that nobody here declares this process has passed over, each time it read them. */
export function skippedEvents(): number {
  const counts = PROJECTIONS.flatMap(({ codec }) => [...codec.skipped.values()]);
  return counts.reduce((sum, count) => sum + count, 0);
}

export function composeReadModels({ store, redis, readModel }: Platform): ReadModels {
  const projector = new Projector(store, readModel, PROJECTIONS);
  return { projector, reader: new EntityReader(redis, readModel, projector), state: new ProjectionState(redis) };
}

/** What sockets and their clients need. */
export interface Realtime extends Omit<RealtimePorts, 'heads'> {
  readonly tickets: Tickets;
  readonly commands: FeatureLiveCommands;
}

/** Commands and queries of every feature, for the gateway and for the command line. */
export interface Features extends ReadModels {
  readonly channels: { readonly commands: ChannelCommands; readonly queries: ChannelQueries };
  readonly interactions: {
    readonly commands: InteractionCommands;
    readonly queries: InteractionQueries;
    readonly drafts: Drafts;
  };
  readonly reactions: { readonly commands: ReactionCommands };
  readonly organizations: Organizations;
  readonly users: Users;
  readonly keys: { readonly commands: KeyCommands; readonly queries: KeyQueries };
  /** Announces changes of keys to every process. */
  readonly keyChanges: KeyChanges;
  readonly authenticator: KeyAuthenticator;
  /** What sockets and their clients need. */
  readonly realtime: Realtime;
}

const composed = new WeakMap<Platform, Features>();

/** The ones that all roles of a process share: commands of one channel wait in one queue, wherever they came from. */
export function featuresOf(platform: Platform): Features {
  let features = composed.get(platform);
  if (features === undefined) composed.set(platform, (features = composeFeatures(platform)));
  return features;
}

export function composeFeatures(platform: Platform): Features {
  const models = composeReadModels(platform);
  const { reader, projector } = models;
  const stores: CommandStores = { ...platform, projector };
  const options = commandOptions(platform);
  const channelRunner = runnerOfChannels(stores, options);
  const collections = new CollectionReader(platform.redis);
  const history = new HistoryReader(platform, projector, collections);
  const updates = new ToolCallUpdates(platform);
  const annotations = new ReactionAnnotations(collections);
  const tree = new InteractionTreeIndex(platform);
  const interactionQueries = new InteractionQueries(reader, collections, history, { annotations, tree, updates });
  const core: EntityCore = { ...stores, reader, commandOptions: options };
  const { keyChanges, authenticator, users } = composeAccess(platform, core);
  const organizations = new Organizations(core);
  const channelQueries = new ChannelQueries(reader, history);
  const drafts = new Drafts(platform, reader);
  const interactions = {
    commands: new InteractionCommands(runnerOfEvents(channelRunner), {
      updates,
      stored: (organizationId, place) =>
        interactionQueries.interaction(organizationId, place, { reader: null, includeIncomplete: true }),
    }),
    queries: interactionQueries,
    drafts,
  };
  const reactions = { commands: new ReactionCommands(runnerOfEvents(channelRunner)) };
  const people = directoryOf({ users, organizations });
  return {
    ...models,
    channels: {
      commands: new ChannelCommands(
        runnerOfPart(channelRunner, 'channel'),
        interactionsOfChannel(runnerOfEvents(channelRunner), platform.store),
      ),
      queries: channelQueries,
    },
    interactions,
    reactions,
    organizations,
    users,
    keys: { commands: new KeyCommands(stores, keyChanges, options), queries: new KeyQueries(reader) },
    keyChanges,
    authenticator,
    realtime: composeRealtime(platform, {
      history,
      collections,
      channels: channelQueries,
      keyChanges,
      authenticator,
      values: [drafts, updates],
      commands: [
        ...interactionLiveCommands({ ...interactions, directory: people }),
        ...reactionLiveCommands({ ...reactions, ...people }),
      ],
    }),
  };
}

/** Who may call: deactivating a user ends the user's keys, so the two are composed together. */
function composeAccess(platform: Platform, core: EntityCore) {
  const keyChanges = new KeyChanges(platform);
  const users = new Users(core, (organizationId, userId) =>
    keyChanges.announce({ kind: 'user-deactivated', organizationId, userId }),
  );
  const directory = new KeyDirectory(platform);
  return { keyChanges, authenticator: new KeyAuthenticator({ directory, changes: keyChanges }), users };
}

/** Runs every command in a channel. The channel's ETag, which `If-Match` names, does not change with posts. */
function runnerOfChannels(stores: CommandStores, options: CommandHandlerOptions) {
  return withPreconditions(
    new CommandHandler(channelStream, stores, options),
    ({ channel }) => channel?.changedRevision ?? null,
  );
}

function composeRealtime(
  platform: Platform,
  of: {
    readonly history: HistoryReader;
    readonly collections: CollectionReader;
    readonly channels: ChannelQueries;
    readonly keyChanges: KeyChanges;
    readonly authenticator: KeyAuthenticator;
    readonly values: readonly LiveValues[];
    readonly commands: readonly LiveCommandType[];
  },
): Realtime {
  const { history, collections, channels, authenticator, keyChanges: changes } = of;
  const access = new KeyedListenerAccess({ authenticator, changes, channels, log: platform.log });
  const typing = new Typing(platform);
  return {
    log: new StoredChannelLog(platform.store, history, {
      projection: channelEvents,
      stateBefore: async (channel, revision) => ({
        channel: await channelBefore(history, channel, revision),
        interactions: await openBefore({ collections, history, channel }, revision),
        reactions: null,
      }),
    }),
    tickets: new RedisTickets(platform),
    access,
    values: new JoinedLiveValues([...of.values, typing]),
    commands: new FeatureLiveCommands({
      types: [...of.commands, typing.command, CANCEL_RUN],
      access,
      idempotency: new RedisIdempotencyStore(platform.redis),
      log: platform.log,
    }),
  };
}

/** What interactions and reactions ask about users and their organization. */
function directoryOf(of: { readonly users: Users; readonly organizations: Organizations }) {
  return {
    user: (organizationId: string, userId: string) => of.users.user(organizationId, userId),
    nameOf: async (organizationId: string, userId: string) =>
      (await of.users.user(organizationId, userId))?.displayName ?? null,
    application: async (organizationId: string) =>
      (await of.organizations.find(organizationId, organizationId))?.application ?? null,
  };
}

function commandOptions({ metrics, log }: Platform): CommandHandlerOptions {
  const failures = metrics.counter(
    'read_model_write_failures_total',
    'Commands whose events the projector had to apply, because the process that appended them could not',
  );
  return {
    onApplyFailure: (error) => {
      failures.add();
      log.warn({ err: error }, 'Redis is away: the read model is behind until the projector has caught up');
    },
    onClockAhead: (aheadMs) => log.warn({ aheadMs }, "The clock of this process is ahead of the event store's"),
  };
}

/** All that travels over sockets, and what is in Kafka for other teams, as the features describe it. */
export function describedProtocol({ realtime }: Features): DescribedProtocol {
  const events = [...channelEventTypes, ...interactionEventTypes, ...reactionEventTypes];
  return { events, commands: realtime.commands.types, publicEvents: publicEventTypes };
}

/** Declares every route of the API. */
export function featureRoutes(features: Features, node: RealtimeNode): (app: HttpApp) => void {
  const { channels, keys, users, organizations } = features;
  const people = directoryOf({ users, organizations });
  return (app) => {
    interactionRoutes(app, { ...features.interactions, directory: people });
    draftRoutes(app, features.interactions);
    reactionRoutes(app, { ...features.reactions, ...people, interactions: features.interactions.queries });
    eventStreamRoutes(app, { node, channels: channels.queries });
    asyncApiRoute(app, describedProtocol(features));
    ticketRoutes(app, { tickets: features.realtime.tickets, channels: channels.queries });
    channelRoutes(app, { ...channels, users });
    participantRoutes(app, { ...channels, users });
    organizationRoutes(app, {
      organizations,
      summarizeUser: (organizationId, userId) => users.summary(organizationId, userId),
    });
    userRoutes(app, { users, organizations });
    keyRoutes(app, { ...keys, organizations });
  };
}

/** Who calls; kept current by announcements until `stop` is called. */
export function featureAuthenticator({ authenticator, keyChanges }: Features): {
  readonly authenticator: Authenticator;
  stop(): void;
} {
  return { authenticator, stop: keyChanges.subscribe(authenticator) };
}
