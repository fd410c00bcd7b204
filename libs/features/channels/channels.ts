import { accept, type Decision, refuse } from '#libs/kernel/decider.ts';
import { NO_EVENTS, streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { type CommandContext, CommandHandler } from '#libs/platform/commands/index.ts';
import {
  Entities,
  type EntityResult,
  type Facets,
  type NotFound,
  type SharedStream,
} from '#libs/platform/entity/index.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import type { FrameSource, LiveValues } from '#libs/platform/live/index.ts';
import type { Document, DocumentPage, HistoryPoint, ListPage } from '#libs/platform/readmodel/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';

import type { Directories } from './channel/channel.requests.ts';
import { channelEntity, type ChannelFilter, ChannelUsers, facetsOfList, usersIn } from './channel/channel.read.ts';
import { channelResource } from './channel/channel.resource.ts';
import {
  type Channel,
  type ChannelChanges,
  type ChannelEvent,
  type ChannelRejection,
  type ChannelState,
  decideAddParticipant,
  decideCreate,
  decideNoteDeletion,
  decideOpen,
  decideRemoveParticipant,
  decideThread,
  decideUpdate,
  type FileDeleted,
  type NewChannel,
  refusalOf,
  type RunConcurrency,
} from './channel/channel.ts';
import { Drafts } from './interaction/drafts.ts';
import { InteractionCommands } from './interaction/interaction.commands.ts';
import { type InteractionRef, parseInteractionId } from './interaction/interaction.id.ts';
import { PastPosts } from './interaction/past-posts.ts';
import { MessageCommands } from './interaction/message.commands.ts';
import { type ChannelStream, decideArchive } from './interaction/interaction.ts';
import { InteractionQueries } from './interaction/reads/queries.ts';
import { ToolCallUpdates } from './interaction/tool-call-updates.ts';
import { Typing } from './interaction/typing.ts';
import { CHANNEL } from './channel.keys.ts';
import { channelAt, channelLog } from './past-channels.ts';
import { ReactionCommands } from './reaction/reaction.commands.ts';
import { ReactionAnnotations } from './reaction/reaction.read.ts';
import { type ChannelHandler, channelProjection, isChannelEvent } from './stream.ts';
import type { Participant } from './channel/participant.ts';

export type ChannelResult = EntityResult<Channel, ChannelRejection | NotFound>;

/**
 * Channels with their interactions and the marks on these: all commands and reads. A process has one, because the commands
 * of a channel share one queue. See `Entities` for guarantees and errors.
 */
export class Channels {
  readonly directories: Directories;
  readonly entities: Entities<ChannelState, ChannelEvent, Facets>;
  readonly interactions: InteractionCommands;
  readonly past: PastPosts;
  /** Reads of interactions. */
  readonly queries: InteractionQueries;
  readonly messages: MessageCommands;
  readonly reactions: ReactionCommands;
  readonly annotations: ReactionAnnotations;
  readonly drafts: Drafts;
  readonly typing: Typing;
  /** The frames of channels, for subscribers that catch up. */
  readonly log: FrameSource;
  /** Values that subscribers of a channel are sent, and which no event stores. */
  readonly values: readonly LiveValues[];
  readonly #handler: ChannelHandler;
  readonly #core: Pick<Core, 'announcements' | 'history' | 'store'>;
  readonly #users = new ChannelUsers();

  constructor(core: Core, directories: Directories) {
    this.#core = core;
    this.directories = directories;
    // The channel's ETag, which `If-Match` names, does not change with posts.
    const revisionOf = ({ channel }: ChannelStream) => channel?.changedRevision ?? null;
    this.#handler = new CommandHandler(channelProjection, core, revisionOf, core.commandOptions);
    this.entities = new Entities(channelEntity, core, { runner: ofChannel(this.#handler), part: 'channel' });
    this.annotations = new ReactionAnnotations(core.collections);
    const updates = new ToolCallUpdates(core);
    this.queries = new InteractionQueries(core, this.annotations, updates);
    this.typing = new Typing(core);
    this.interactions = new InteractionCommands(this.#handler, { queries: this.queries, updates });
    this.past = new PastPosts(this.#handler);
    this.messages = new MessageCommands(this.#handler, this.queries);
    this.reactions = new ReactionCommands(this.#handler);
    this.drafts = new Drafts(core);
    this.log = channelLog(core);
    this.values = [this.drafts, updates, this.typing];
  }

  /** Checks the parent and the origin of a thread in the log, because read models may lag behind. */
  async create(context: CommandContext, channel: NewChannel): Promise<ChannelResult> {
    const { parentChannelId, originMessageId } = channel;
    // Others are queued synchronously: commands on the new channel that follow are decided and appended together with this one.
    if (parentChannelId !== null) {
      const rejection = await this.#rejectionOfThread(context, parentChannelId, originMessageId);
      // An earlier run of the command may have created the thread before its parent was archived.
      if (rejection !== null && (await this.entities.latest(context.organizationId, channel.id)) === null)
        return { ok: false, rejection };
    }
    return this.entities.run(context, channel.id, (state) => decideCreate(state, channel));
  }

  /** A channel whose id is derived from its participants: found, or created with them. It must not be a thread. */
  open(context: CommandContext, channel: NewChannel): Promise<ChannelResult> {
    return this.entities.run<ChannelRejection | NotFound>(context, channel.id, (state) =>
      state !== null && state.organizationId !== context.organizationId
        ? refuse({ reason: 'not_found' })
        : decideOpen(state, channel),
    );
  }

  update(context: CommandContext, id: EntityId, changes: ChannelChanges): Promise<ChannelResult> {
    return this.#administer(context, id, (channel) => decideUpdate(channel, changes));
  }

  addParticipant(context: CommandContext, id: EntityId, participant: Participant): Promise<ChannelResult> {
    return this.#administer(context, id, (channel) => decideAddParticipant(channel, participant));
  }

  /** The access of the participant has ended in this process when the result is there. */
  async removeParticipant(context: CommandContext, id: EntityId, participantId: EntityId): Promise<ChannelResult> {
    const decide = (channel: Channel) => decideRemoveParticipant(channel, participantId);
    const result = await this.#administer(context, id, decide, participantId);
    const { organizationId } = context;
    const change = { kind: 'participant-removed', organizationId, channelId: id } as const;
    if (result.ok) await this.#core.announcements.announce(change);
    return result;
  }

  /** Records that a file of the channel was deleted. Rejections: there is no such channel any longer, or it is archived. */
  noteDeletedFile(context: CommandContext, id: EntityId, file: FileDeleted): Promise<ChannelResult> {
    return this.entities.update<ChannelRejection>(context, id, (channel) => decideNoteDeletion(channel, file));
  }

  /** Pins an interaction to its channel, or unpins it. Deleted ones cannot be pinned. */
  async pin(context: CommandContext, ref: InteractionRef, isPinned: boolean): Promise<ChannelResult> {
    return this.entities.resultOf(ownResult(await this.messages.pin(context, ref, isPinned)));
  }

  /** Archives the channel, and fails its incomplete interactions in the same append. */
  async archive(context: CommandContext, id: EntityId): Promise<ChannelResult> {
    return this.entities.resultOf(
      ownResult(await this.#handler.handle(id, context, (state) => decideArchive(state, context))),
    );
  }

  #administer(
    context: CommandContext,
    id: EntityId,
    decide: (channel: Channel) => Decision<ChannelEvent, ChannelRejection>,
    removedId?: EntityId,
  ): Promise<ChannelResult> {
    return this.entities.update<ChannelRejection | NotFound>(context, id, (channel) => {
      const refusal = refusalOf(channel, context, removedId);
      return refusal === null ? decide(channel) : refuse(refusal);
    });
  }

  /** The channel, or null if the organization has no such channel. */
  channel(organizationId: EntityId, id: EntityId): Promise<Document | null> {
    return this.entities.document(organizationId, id);
  }

  /** The channel at a point in its history, or null if it did not exist then. */
  async channelAt(organizationId: EntityId, id: EntityId, point: HistoryPoint): Promise<Document | null> {
    if ((await this.channel(organizationId, id)) === null) return null;
    const { history } = this.#core;
    const stream = { category: CHANNEL, organizationId, id };
    return history.at(stream, point, async (revision) => {
      const current = await this.channel(organizationId, id);
      if (current === null || current.revision <= revision) return current;
      const channel = await channelAt(history, stream, revision);
      if (channel === null) return null;
      return { revision: channel.changedRevision, json: Buffer.from(JSON.stringify(channelResource(channel))) };
    });
  }

  /** The channel's participants with the ids of their records, or null as for {@link channel}. */
  async participants(organizationId: EntityId, id: EntityId): Promise<readonly Participant[] | null> {
    return (await this.entities.find(organizationId, id))?.participants ?? null;
  }

  /** The users that participate in the channel, or null as for {@link channel}. Concurrent calls share a round trip. */
  async usersOf(organizationId: EntityId, id: EntityId): Promise<ReadonlySet<EntityId> | null> {
    const channel = await this.channel(organizationId, id);
    return channel && this.#users.of(id, channel);
  }

  /** As {@link usersOf}, at the end of the log. @throws `Fault` `store_unavailable`; StreamGone */
  async usersNow(organizationId: EntityId, id: EntityId): Promise<ReadonlySet<EntityId> | null> {
    const channel = await this.entities.latest(organizationId, id);
    return channel && new Set(usersIn(channel));
  }

  /** The registered agents that participate in the channel, as its log has them now; none without such a channel. */
  async agentsIn(organizationId: EntityId, id: EntityId): Promise<ReadonlySet<EntityId>> {
    const channel = await this.entities.latest(organizationId, id);
    return new Set((channel?.participants ?? []).flatMap((one) => (one.type === 'agent' ? [one.agentId] : [])));
  }

  /** How messages of the channel treat runs that answer earlier ones, as of `seenRevision` of the context or later. */
  async runConcurrency(context: CommandContext, id: EntityId): Promise<RunConcurrency> {
    const channel = await this.entities.current(context, id);
    const isOwn = channel?.organizationId === context.organizationId;
    return (isOwn ? channel.runConcurrency : null) ?? 'queue';
  }

  /** The incomplete interaction of a span; null if the log of its channel has none now. One may have ended elsewhere since. */
  async openInteraction(
    { commandId, organizationId, actor, at }: CommandContext,
    channelId: EntityId,
    spanId: string,
  ): Promise<InteractionRef | null> {
    const openIn = ({ channel, interactions }: ChannelStream) =>
      channel?.organizationId === organizationId
        ? Object.values(interactions.open).find((one) => one.spanId === spanId)
        : undefined;
    let found: ReturnType<typeof openIn>;
    const isKnown = this.#handler.isKnown(channelId, NO_EVENTS, (state) => (found = openIn(state)) !== undefined);
    if (!isKnown) {
      const result = await this.#handler.handle(channelId, { commandId, organizationId, actor, at }, () => accept());
      found = result.ok ? openIn(result.state) : undefined;
    }
    return found === undefined ? null : { channelId, sequence: found.sequence };
  }

  /** Channels that match the filter, newest first. */
  list(organizationId: EntityId, filter: ChannelFilter, page: ListPage): Promise<DocumentPage> {
    return this.entities.page(organizationId, facetsOfList(filter), page);
  }

  async #rejectionOfThread(
    context: CommandContext,
    parentChannelId: EntityId,
    originMessageId: NewChannel['originMessageId'],
  ): Promise<ChannelRejection | null> {
    const decision = decideThread(await this.entities.latest(context.organizationId, parentChannelId));
    if (!decision.ok) return decision.rejection;
    if (originMessageId === null || (await wasPosted(this.#core.store, parentChannelId, originMessageId))) return null;
    return { reason: 'origin_not_found' };
  }
}

/** The commands of the channel itself, which decide on its part of the state. */
function ofChannel(handler: ChannelHandler): SharedStream<ChannelState, ChannelEvent>['runner'] {
  return {
    async handle(id, context, decide) {
      return ownResult(await handler.handle(id, context, ({ channel }, at) => decide(channel, at)));
    },
    isKnown: (id, revision, holds) => handler.isKnown(id, revision, ({ channel }) => holds(channel)),
  };
}

type Accepted = Extract<Awaited<ReturnType<ChannelHandler['handle']>>, { readonly ok: true }>;

function ownResult<Refused extends { readonly ok: false }>(result: Accepted | Refused) {
  if (!result.ok) return result;
  return { ...result, state: result.state.channel, events: result.events.filter(isChannelEvent) };
}

/** Whether the stream of the channel contains the interaction. @throws `Fault` `store_unavailable` */
async function wasPosted(
  store: Pick<EventStore, 'readStream'>,
  channelId: EntityId,
  interactionId: EntityId,
): Promise<boolean> {
  const ref = parseInteractionId(interactionId);
  if (ref?.channelId !== channelId) return false;
  const from = streamRevision(ref.sequence - 1);
  for await (const event of store.readStream(streamName(CHANNEL, channelId), { from, limit: 1 })) {
    return event.type === 'InteractionPosted.v1';
  }
  return false;
}
