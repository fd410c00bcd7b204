import { accept, refuse, type Decision } from '#libs/kernel/decider.ts';
import type { Actor, StreamRevision } from '#libs/kernel/event.ts';
import type { KeyChanges } from '#libs/features/keys/index.ts';
import { systemClock } from '#libs/kernel/clock.ts';
import { newId, type EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext, CommandResult, CommandRunner } from '#libs/platform/commands/index.ts';
import {
  Entities,
  entity,
  type EntityCore,
  type EntityResult,
  type Facets,
  type NotFound,
} from '#libs/platform/entity/index.ts';
import type {
  Document,
  DocumentPage,
  EntityRef,
  HistoryPoint,
  HistoryReader,
  ListPage,
} from '#libs/platform/readmodel/index.ts';

import {
  CHANNEL,
  CHANNEL_READ_MODEL,
  channelCodec,
  channelFold,
  decideAddParticipant,
  decideArchive,
  decideCreate,
  decideOpen,
  decideRemoveParticipant,
  decideThread,
  decideUpdate,
  refusalOf,
  type Channel,
  type ChannelChanges,
  type ChannelEvent,
  type ChannelRejection,
  type ChannelState,
  type NewChannel,
  type Participant,
  type RunConcurrency,
} from './channel.ts';
import { channelResource } from './channel.resource.ts';
import { ChannelUsers } from './channel-users.ts';

export const channelEntity = entity<ChannelState, ChannelEvent, Facets>({
  ...CHANNEL_READ_MODEL,
  codec: channelCodec,
  fold: channelFold,
  resource: channelResource,
  facets: (channel) => {
    const archived = channel.archivedAt !== null;
    const agent = channel.participants.flatMap((one) => (one.type === 'agent' ? [one.agentId] : []));
    const participant = usersIn(channel);
    return { [baseOf(archived)]: true, ...facetsOf({ ...channel, archived, agent, participant }) };
  },
});

/** Of a read in the form of a command without events, which is stored nowhere. */
const READER: Actor = { type: 'system', id: 'reader' };

export interface ChannelFilter {
  readonly archived: boolean;
  readonly type?: string | undefined;
  readonly channelType?: string | undefined;
  readonly source?: string | undefined;
  readonly agent?: string | undefined;
  /** Users that take part, all of them. */
  readonly participant?: readonly string[] | undefined;
  readonly parentChannelId?: string | undefined;
}

const baseOf = (archived: boolean): string => (archived ? 'archived' : 'open');

/** Each name includes whether the channel is archived, so that a filter by one value reads one index. */
function facetsOf(
  values: Partial<Record<keyof ChannelFilter, Facets[string]>> & { readonly archived: boolean },
): Facets {
  const { archived, type, channelType, source, agent, participant, parentChannelId } = values;
  const facets = { type, channel_type: channelType, source, agent, participant, parent: parentChannelId };
  return Object.fromEntries(Object.entries(facets).map(([name, value]) => [`${baseOf(archived)}:${name}`, value]));
}

export type ChannelResult = EntityResult<Channel, ChannelRejection | NotFound>;

/** Port: interactions, for the commands of channels. Their feature depends on this one. */
export interface ChannelInteractions {
  /** Whether the stream of the channel contains the interaction. @throws `Fault` `store_unavailable` */
  wasPosted(channelId: EntityId, interactionId: EntityId): Promise<boolean>;
  /**
   * Runs a command that may archive the channel, and fails its incomplete interactions in the same append. See
   * `CommandHandler.handle` for guarantees and errors.
   */
  archive(
    channelId: EntityId,
    context: CommandContext,
    decide: (
      channel: ChannelState,
      hasOpenInteractions: boolean,
    ) => Decision<ChannelEvent, ChannelRejection | NotFound>,
  ): Promise<CommandResult<ChannelState, ChannelEvent, ChannelRejection | NotFound>>;
}

/** The commands and reads of channels. See `Entities` for guarantees and errors. */
export class Channels {
  readonly entities: Entities<ChannelState, ChannelEvent, Facets>;
  readonly #history: HistoryReader;
  readonly #interactions: ChannelInteractions;
  readonly #changes: Pick<KeyChanges, 'announce'>;
  readonly #users = new ChannelUsers();

  /** @param runner runs all commands of channels in this process */
  constructor(
    core: EntityCore & { readonly history: HistoryReader },
    runner: CommandRunner<ChannelState, ChannelEvent>,
    interactions: ChannelInteractions,
    changes: Pick<KeyChanges, 'announce'>,
  ) {
    this.#changes = changes;
    this.entities = new Entities(channelEntity, core, { runner, part: 'channel' });
    this.#history = core.history;
    this.#interactions = interactions;
  }

  /** Checks the parent and the origin of a thread in the log, because read models may lag behind. */
  async create(context: CommandContext, channel: NewChannel): Promise<ChannelResult> {
    const rejection = await this.#rejectionOfThread(context, channel);
    // An earlier run of the command may have created the thread before its parent was archived.
    if (rejection !== null && (await this.#current(context, channel.id)) === null) return { ok: false, rejection };
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
    if (result.ok) await this.#changes.announce({ kind: 'participant-removed', organizationId, channelId: id });
    return result;
  }

  async archive(context: CommandContext, id: EntityId): Promise<ChannelResult> {
    const result = await this.#interactions.archive(id, context, (state, hasOpen) => {
      if (state?.organizationId !== context.organizationId) return refuse({ reason: 'not_found' });
      const refusal = refusalOf(state, context);
      return refusal === null ? decideArchive(state, hasOpen) : refuse(refusal);
    });
    return this.entities.resultOf(result);
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
    return this.#history.at({ category: CHANNEL, organizationId, id }, point, async (revision) => {
      const current = await this.channel(organizationId, id);
      if (current === null || current.revision <= revision) return current;
      const channel = await this.#foldedAt(organizationId, id, revision);
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
    const channel = await this.#current(
      { commandId: newId(), organizationId, actor: READER, at: systemClock.now() },
      id,
    );
    return channel && new Set(usersIn(channel));
  }

  /** The registered agents that participate in the channel, as its log has them now; none without such a channel. */
  async agentsIn(context: CommandContext, id: EntityId): Promise<ReadonlySet<EntityId>> {
    const channel = await this.#current(context, id);
    return new Set((channel?.participants ?? []).flatMap((one) => (one.type === 'agent' ? [one.agentId] : [])));
  }

  /** What a message does to runs that answer earlier ones, as the log of its channel has it now. */
  async runConcurrency(context: CommandContext, id: EntityId): Promise<RunConcurrency> {
    return (await this.#current(context, id))?.runConcurrency ?? 'queue';
  }

  /** Channels that match the filter, newest first. */
  list(organizationId: EntityId, filter: ChannelFilter, page: ListPage): Promise<DocumentPage> {
    const facets = facetsOf(filter);
    const isFiltered = Object.values(facets).some((value) => value !== undefined);
    return this.entities.page(organizationId, isFiltered ? facets : { [baseOf(filter.archived)]: true }, page);
  }

  async #foldedAt(organizationId: EntityId, id: EntityId, revision: StreamRevision): Promise<ChannelState> {
    const stream = { category: CHANNEL, organizationId, id };
    let channel = await channelBefore(this.#history, stream, revision);
    for (const stored of await this.#history.blockUpTo(stream, revision)) {
      const event = channelCodec.types.has(stored.type) ? channelCodec.decode(stored) : null;
      if (event !== null) channel = channelFold.evolve(channel, event);
    }
    return channel;
  }

  async #rejectionOfThread(
    context: CommandContext,
    { parentChannelId, originMessageId }: NewChannel,
  ): Promise<ChannelRejection | null> {
    if (parentChannelId === null) return null;
    const decision = decideThread(await this.#current(context, parentChannelId));
    if (!decision.ok) return decision.rejection;
    if (originMessageId === null || (await this.#interactions.wasPosted(parentChannelId, originMessageId))) return null;
    return { reason: 'origin_not_found' };
  }

  /** The organization's channel at the end of its stream, read by a command without events. */
  async #current({ commandId, organizationId, actor, at }: CommandContext, id: EntityId): Promise<ChannelState> {
    // Omits the members that identify a repeated command, which concerns another channel.
    const channel = await this.entities.current({ commandId, organizationId, actor, at }, id, () => accept());
    return channel?.organizationId === organizationId ? channel : null;
  }
}

function usersIn({ participants }: Channel): EntityId[] {
  return participants.flatMap((one) => (one.type === 'authenticated_user' ? [one.userId] : []));
}

/** The channel before the block of events that contains `revision`. */
export async function channelBefore(
  history: HistoryReader,
  stream: EntityRef,
  revision: StreamRevision,
): Promise<ChannelState> {
  // Written by the fold of this feature; see `channelStream` in services/features.ts.
  return (await history.keptBefore(stream, 'channel', revision)) as ChannelState;
}
