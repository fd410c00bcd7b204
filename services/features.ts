/*
 * The list of modules: what all features contribute to each role, and what they use of each other. Composed by hand, so
 * that the path of a request can be read.
 */
import { agentsModule } from '#libs/features/agents/index.ts';
import { invocationsModule, promptsModule, runsModule } from '#libs/features/answering/index.ts';
import {
  CHANNEL,
  CHANNEL_READ_MODEL,
  channelBefore,
  channelsModule,
  type Channels,
} from '#libs/features/channels/index.ts';
import { crawlsModule } from '#libs/features/crawls/index.ts';
import { documentsModule, type MediaFiles } from '#libs/features/documents/index.ts';
import { interactionsModule, openBefore, openSequences } from '#libs/features/interactions/index.ts';
import { keysModule } from '#libs/features/keys/index.ts';
import { knowledgeModule } from '#libs/features/knowledge/index.ts';
import { mediaModule } from '#libs/features/media/index.ts';
import { Applications, organizationsModule } from '#libs/features/organizations/index.ts';
import { ReactionAnnotations, reactionsModule } from '#libs/features/reactions/index.ts';
import { realtimeModule } from '#libs/features/realtime/index.ts';
import { reportsModule } from '#libs/features/reports/index.ts';
import { usersModule, type Users } from '#libs/features/users/index.ts';
import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CorruptEventError } from '#libs/kernel/faults.ts';
import { CommandHandler, runnerOfEvents, runnerOfPart } from '#libs/platform/commands/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { PublicMessages } from '#libs/platform/live/index.ts';
import { composeProjections, withHistory, type AnyProjection, type EntityRef } from '#libs/platform/readmodel/index.ts';
import {
  type Core,
  type Module,
  type ModuleInstance,
  openCore,
  openReadModels,
  type Platform,
  type ReadModels,
} from '#libs/platform/runtime/index.ts';

export type { ReadModels } from '#libs/platform/runtime/index.ts';

const MODULES: readonly Module[] = [
  channelsModule,
  interactionsModule,
  reactionsModule,
  organizationsModule,
  usersModule,
  keysModule,
  knowledgeModule,
  documentsModule,
  crawlsModule,
  reportsModule,
  mediaModule,
  agentsModule,
  runsModule,
  invocationsModule,
  promptsModule,
  realtimeModule,
];

/** Channels, interactions and reactions write to the same streams: one revision orders all that happens in a channel. */
const channelEvents = composeProjections(CHANNEL_READ_MODEL, {
  channel: channelsModule.partOfChannel,
  interactions: interactionsModule.partOfChannel,
  reactions: reactionsModule.partOfChannel,
});
/** The history stores the states that reads of the past start from. */
export const channelStream = withHistory(channelEvents, {
  channel: (state) => state.channel,
  open: (state) => openSequences(state.interactions),
});

/** One for each category of streams that becomes a read model. */
export const PROJECTIONS: readonly AnyProjection[] = [
  channelStream,
  ...MODULES.flatMap(({ projections }) => projections ?? []),
];
const PUBLIC_EVENTS = MODULES.flatMap(({ publicEvents }) => publicEvents ?? []);

/** Where all events of Parley name blobs. */
export const BLOB_REFERENCES = MODULES.flatMap(({ blobReferences }) => blobReferences ?? []);

/** Every type of event that Kafka publishes for other teams. */
export const publicEventTypes = PUBLIC_EVENTS.flatMap(({ described }) => described);

export function composePublicMessages(onCorrupt: (error: CorruptEventError) => void): PublicMessages {
  return new PublicMessages({ streamPrefix: `${CHANNEL}-`, events: PUBLIC_EVENTS, onCorrupt });
}

export function composeReadModels(platform: Platform, projections = PROJECTIONS): ReadModels {
  return openReadModels(platform, projections);
}

/** All features on the stores of one process, which creates them once: commands of one channel share one queue. */
export type Features = ReturnType<typeof composeFeatures>;

export function composeFeatures(platform: Platform) {
  const core = openCore(platform, PROJECTIONS);
  const organizations = organizationsModule.create(core, {
    summarizeUser: (...user) => users.users.summary(...user),
    onApplicationChanged: () => keys.changes.announceOrganization(),
  });
  const keys = keysModule.create(core, organizations);
  const users = usersModule.create(core, { ...organizations, onDeactivated: announcing(keys.changes) });
  const directory = directoryOf(users.users, new Applications(organizations.organizations, keys.changes));

  const runner = channelRunner(core);
  const interactions = interactionsModule.create(core, {
    runner: runnerOfEvents(runner),
    annotations: new ReactionAnnotations(core.collections),
    directory,
  });
  const reactions = reactionsModule.create(core, {
    runner: runnerOfEvents(runner),
    interactions: interactions.queries,
    ...directory,
  });
  const sources = sourcesOf(core, { file: (organizationId, id) => inChannels.media.file(organizationId, id) });
  const toAnswer = { ...sources, ...organizations, ...users, ...directory, interactions, reactions };
  const answering = answeringOf(core, toAnswer, () => channels.channels);
  const channels = channelsModule.create(core, {
    ...toAnswer,
    runner: runnerOfPart(runner, 'channel'),
    interactions: interactions.ofChannel,
    agents: { agent: (organizationId, id) => answering.agents.agents.find(organizationId, id) },
  });
  const ofChannels = { ...channels, interactions, realtime: () => realtime };
  const inChannels = inChannelsOf(core, { ...toAnswer, ...answering, ...ofChannels });
  const others = [...Object.values(sources), ...Object.values(answering), ...Object.values(inChannels)];
  const realtime = realtimeModule.create(core, {
    channelEvents: { projection: channelEvents, stateBefore: stateOfChannelBefore(core) },
    channels: channels.channels,
    keys,
    modules: [interactions, reactions, channels, organizations, users, keys, ...others],
    liveEvents: MODULES.flatMap(({ liveEvents }) => liveEvents ?? []),
    publicEvents: publicEventTypes,
  });
  return {
    projector: core.projector,
    reader: core.reader,
    state: core.state,
    organizations: organizations.organizations,
    users: users.users,
    keys: keys.keys,
    keyChanges: keys.changes,
    startAuthenticator: keys.startAuthenticator,
    interactions,
    reactions,
    channels: channels.channels,
    realtime,
    knowledge: sources.knowledge.knowledge,
    documents: sources.documents.documents,
    agents: answering.agents.agents,
    runs: answering.runs.runs,
    ...contributionsOf([interactions, reactions, realtime, channels, ...others, organizations, users, keys]),
  };
}

/** What agents know, and where that comes from. */
function sourcesOf(core: Core, media: MediaFiles) {
  const knowledge = knowledgeModule.create(core);
  const documents = documentsModule.create(core, { ...knowledge, media });
  const crawls = crawlsModule.create(core, { ...knowledge, ...documents });
  const reports = reportsModule.create(core, knowledge);
  return { knowledge, documents, crawls, reports };
}

function announcing(changes: ReturnType<typeof keysModule.create>['changes']) {
  return (organizationId: EntityId, userId: EntityId) =>
    changes.announce({ kind: 'user-deactivated', organizationId, userId });
}

type PartsOfAnswering = ReturnType<typeof sourcesOf> &
  ReturnType<typeof directoryOf> &
  Pick<ReturnType<typeof organizationsModule.create>, 'summarize'> & {
    readonly interactions: ReturnType<typeof interactionsModule.create>;
    readonly reactions: ReturnType<typeof reactionsModule.create>;
  };

/** Agents, and their answers in channels. */
function answeringOf(
  core: Core,
  { knowledge, documents, summarize, ...parts }: PartsOfAnswering,
  channelsOf: () => Pick<Channels, 'agentsIn' | 'runConcurrency'>,
) {
  const agents = agentsModule.create(core, { ...knowledge, summarize });
  const channels: ReturnType<typeof channelsOf> = {
    agentsIn: (...channel) => channelsOf().agentsIn(...channel),
    runConcurrency: (...channel) => channelsOf().runConcurrency(...channel),
  };
  return { agents, runs: runsModule.create(core, { ...parts, ...knowledge, ...documents, ...agents, channels }) };
}

type PartsInChannels = Omit<PartsOfAnswering, 'reactions'> &
  ReturnType<typeof answeringOf> &
  Pick<ReturnType<typeof channelsModule.create>, 'channels'> &
  Pick<Parameters<typeof promptsModule.create>[1], 'realtime'>;

/** The files of channels, which agents answer their messages, and prompts. */
function inChannelsOf(core: Core, { knowledge, documents, agents, runs, interactions, ...parts }: PartsInChannels) {
  const media = mediaModule.create(core, { ...knowledge, ...documents, ...parts, interactions });
  const invocations = invocationsModule.create(core, {
    ...parts,
    ...knowledge,
    ...agents,
    interactions: interactions.commands,
    requestRun: (context, run) => runs.runs.request(context, run),
  });
  const prompts = promptsModule.create(core, {
    ...parts,
    ...agents,
    ...runs,
    ...invocations,
    interactions,
    users: parts,
  });
  return { media, invocations, prompts };
}

function contributionsOf(modules: readonly ModuleInstance[]) {
  return {
    /** Declares all routes of the API. The OpenAPI document lists them in this order. */
    routes: (app: HttpApp): void => modules.forEach(({ routes }) => routes?.(app)),
    reactors: modules.flatMap(({ reactors }) => reactors ?? []),
  };
}

/** Where a replay of a channel's events starts. */
function stateOfChannelBefore(core: Core) {
  return async (channel: EntityRef, revision: StreamRevision) => ({
    channel: await channelBefore(core.history, channel, revision),
    interactions: await openBefore({ ...core, channel }, revision),
    reactions: null,
  });
}

/** Runs every command in a channel. The channel's ETag, which `If-Match` names, does not change with posts. */
function channelRunner(core: Core) {
  return new CommandHandler(
    channelStream,
    core,
    ({ channel }) => channel?.changedRevision ?? null,
    core.commandOptions,
  );
}

/** What interactions and reactions look up about users and their organization. */
function directoryOf(users: Users, applications: Applications) {
  return {
    user: (organizationId: EntityId, userId: EntityId) => users.user(organizationId, userId),
    nameOf: async (organizationId: EntityId, userId: EntityId) =>
      (await users.user(organizationId, userId))?.displayName ?? null,
    application: (organizationId: EntityId) => applications.of(organizationId),
  };
}
