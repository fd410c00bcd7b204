/*
 * The list of modules, and the features on the stores of a process: each is created by one call, from features above it.
 * Composed by hand, so that the path of a request can be read.
 */
import { agentRoutes, Agents, agentsModule, AgentTools, Inboxes } from '#libs/features/agents/index.ts';
import { answeringModule, createAnswering, createPrompts } from '#libs/features/answering/index.ts';
import {
  CHANNEL,
  ChannelAccess,
  channelLiveCommands,
  channelRoutes,
  Channels,
  channelsModule,
  interactionRoutes,
  messageRoutes,
  MessageSearch,
  messageSearchRoutes,
  reactionRoutes,
  readMarkerRoutes,
  ReadMarkers,
} from '#libs/features/channels/index.ts';
import { crawlEntity, crawlReactors, crawlRoutes, crawlsModule } from '#libs/features/crawls/index.ts';
import {
  documentReactors,
  documentRoutes,
  Documents,
  documentsModule,
  IngestedDocuments,
  openExtractionPool,
} from '#libs/features/documents/index.ts';

import { KeyAuthenticator, KeyDirectory, keyRoutes, Keys, keysModule } from '#libs/features/keys/index.ts';
import { knowledgeModule, openKnowledge } from '#libs/features/knowledge/index.ts';
import {
  CallerAuthenticator,
  KeySets,
  membersModule,
  TokenAuthenticator,
  tokenIssuerRoutes,
  TokenIssuers,
} from '#libs/features/members/index.ts';
import { mediaItemRoutes, MediaItems, mediaModule, mediaReactors } from '#libs/features/media/index.ts';
import { organizationRoutes, Organizations, organizationsModule } from '#libs/features/organizations/index.ts';

import { createRealtime } from '#libs/features/realtime/index.ts';
import { reportEntity, reportReactors, reportRoutes, reportsModule } from '#libs/features/reports/index.ts';
import { userRoutes, Users, usersModule } from '#libs/features/users/index.ts';
import type { CorruptEventError } from '#libs/kernel/faults.ts';
import { type Config, parseConfig } from '#libs/platform/config/index.ts';
import { Entities } from '#libs/platform/entity/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import { PublicMessages } from '#libs/platform/live/index.ts';
import { toolServers } from '#libs/platform/mcp/index.ts';
import type { AnyReactor } from '#libs/platform/reactors/index.ts';
import type { AnyProjection } from '#libs/platform/readmodel/index.ts';
import { type Module, openCore, openReadModels, type Platform, type ReadModels } from '#libs/platform/runtime/index.ts';

export type { ReadModels } from '#libs/platform/runtime/index.ts';

const MODULES: readonly Module[] = [
  channelsModule,
  organizationsModule,
  usersModule,
  keysModule,
  membersModule,
  knowledgeModule,
  documentsModule,
  crawlsModule,
  reportsModule,
  mediaModule,
  agentsModule,
  answeringModule,
];

/** A projection for each category of streams that becomes a read model. */
export const PROJECTIONS: readonly AnyProjection[] = MODULES.flatMap(({ projections }) => projections ?? []);
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

/** Settings of features. */
export type FeatureConfig = Pick<Config, 'embedding' | 'modelContextTokens' | 'relevance' | 'prompts' | 'uploads'>;

/** All features on the stores of one process, which creates them once: commands of one channel share one queue. */
export type Features = ReturnType<typeof composeFeatures>;

// A single list, which is read from top to bottom.
// oxlint-disable-next-line max-lines-per-function
export function composeFeatures(platform: Platform, config: FeatureConfig = parseConfig({})) {
  const { embedding, modelContextTokens: maxTokens, relevance, prompts: limits, uploads } = config;
  const core = openCore(platform, PROJECTIONS);

  // 1. Look-ups of other features.
  const { announcements } = core;
  const users = new Users(core);
  const organizations = new Organizations(core, users);
  const keys = new Keys(core);
  const tokenIssuers = new TokenIssuers(core);
  const authenticator = new CallerAuthenticator(
    new KeyAuthenticator({ directory: new KeyDirectory(core), announcements }),
    new TokenAuthenticator({
      store: core.store,
      issuers: tokenIssuers,
      users,
      keySets: new KeySets({ fetcher: core.fetcher, log: core.log }),
      announcements,
    }),
  );
  const agents = new Agents(core);
  const agentTools = new AgentTools(toolServers(core.fetcher), agents);
  const inboxes = new Inboxes(core);

  // 2. What agents know, and where that comes from.
  const knowledge = openKnowledge(core, embedding);
  const extraction = openExtractionPool(core);
  const documents = new Documents(core);
  const ingestedDocuments = new IngestedDocuments(documents, { knowledge, pool: extraction });
  const crawls = new Entities(crawlEntity, core);
  const reports = new Entities(reportEntity, core);
  const media = new MediaItems(core);

  // 3. Channels.
  const channels = new Channels(core, { users, agents, organizations });
  const messageSearch = new MessageSearch(core);
  const access = new ChannelAccess(channels, announcements);
  const markers = new ReadMarkers(core, channels);

  // 4. Answers of agents.
  const answering = createAnswering(core, {
    agents,
    agentTools,
    inboxes,
    channels,
    organizations,
    knowledge,
    extraction,
    maxTokens,
    relevance,
  });

  // 5. Protocols.
  const realtime = createRealtime(core, {
    channels,
    authenticator,
    members: access,
    commands: [...channelLiveCommands(channels), ...answering.liveCommands, channels.typing.command],
    liveEvents: MODULES.flatMap(({ liveEvents }) => liveEvents ?? []),
    publicEvents: publicEventTypes,
  });
  const prompts = createPrompts(core, {
    agents,
    channels,
    runs: answering.runs,
    invocations: answering.invocations,
    realtime,
    limits,
  });

  const reactors: readonly AnyReactor[] = [
    ...documentReactors({ documents, ingestedDocuments, knowledge, pool: extraction }),
    ...crawlReactors(core, { knowledge, documents, ingestedDocuments, extraction }),
    ...reportReactors(core, knowledge, maxTokens),
    ...answering.reactors,
    ...mediaReactors(core, { knowledge, documents, channels }),
  ];
  return {
    projector: core.projector,
    reader: core.reader,
    state: core.state,
    organizations,
    users,
    keys,
    announcements,
    /** Receives the changes of other processes until `stop` is called. */
    startAuthenticator: () => ({ authenticator, access, stop: announcements.receive() }),
    channels,
    realtime,
    knowledge,
    documents,
    agents,
    runs: answering.runs,
    /** Declares all routes of the API. The OpenAPI document lists them in this order. */
    routes(app: HttpApp): void {
      interactionRoutes(app, channels);
      messageRoutes(app, channels);
      messageSearchRoutes(app, channels, access, messageSearch);
      reactionRoutes(app, channels);
      realtime.routes(app);
      channelRoutes(app, channels, { access, markers });
      readMarkerRoutes(app, channels, markers);
      knowledge.routes(app);
      documentRoutes(app, { documents, knowledge, media });
      crawlRoutes(app, crawls, knowledge, core.fetcher);
      reportRoutes(app, reports, knowledge);
      agentRoutes(app, { agents, agentTools, inboxes, knowledge, organizations, fetcher: core.fetcher });
      answering.runRoutes(app);
      mediaItemRoutes(app, core, { media, knowledge, channels, access, limits: uploads });
      answering.decisionRoutes(app);
      prompts.routes(app);
      organizationRoutes(app, organizations, users);
      userRoutes(app, users, organizations);
      keyRoutes(app, keys, organizations);
      tokenIssuerRoutes(app, tokenIssuers, core.fetcher);
    },
    /** Effects that follow from events; run by the role `worker`. */
    reactors,
  };
}
