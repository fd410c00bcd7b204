import { z } from 'zod';

import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type {
  Document,
  DocumentPage,
  EntityReader,
  HistoricEntity,
  HistoryPoint,
  HistoryReader,
  ListPage,
} from '#libs/platform/readmodel/index.ts';

import { channelFold } from './channel.decider.ts';
import type { ChannelState } from './channel.decider.ts';
import { CHANNEL, channelCodec } from './channel.events.ts';
import type { Participant } from './channel.events.ts';
import { channelResource, facetsOfFilter } from './channels.projection.ts';
import type { ChannelFilter } from './channels.projection.ts';

const USER = 'authenticated_user';
const takingPart = z.object({
  participants: z.array(z.object({ type: z.string(), user_id: z.string().optional() })),
});

/** Reads of channels: ready bytes from the read model. All throw the faults of `EntityReader`. */
export class ChannelQueries {
  readonly #reader: EntityReader;
  readonly #history: HistoryReader;

  constructor(reader: EntityReader, history: HistoryReader) {
    this.#reader = reader;
    this.#history = history;
  }

  /** The channel, or null if it does not exist or is another organization's. */
  channel(organizationId: EntityId, id: EntityId): Promise<Document | null> {
    return this.#reader.document(CHANNEL, organizationId, id);
  }

  /** The channel as it was at a point, or null also if it did not exist then. */
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

  async #foldedAt(organizationId: EntityId, id: EntityId, revision: StreamRevision): Promise<ChannelState> {
    const entity = { category: CHANNEL, organizationId, id };
    let channel = await channelBefore(this.#history, entity, revision);
    for (const stored of await this.#history.blockUpTo(entity, revision)) {
      const event = channelCodec.types.has(stored.type) ? channelCodec.decode(stored) : null;
      if (event !== null) channel = channelFold.evolve(channel, event);
    }
    return channel;
  }

  /** The channel's participants with the ids of their records, or null as for {@link channel}. */
  async participants(organizationId: EntityId, id: EntityId): Promise<readonly Participant[] | null> {
    // Written by this feature's own fold, as its part of the stream's state (see services/features.ts).
    const state = (await this.#reader.state(CHANNEL, organizationId, id)) as { readonly channel: ChannelState } | null;
    return state?.channel?.participants ?? null;
  }

  /** The users that take part in the channel, or null as for {@link channel}. Many at once cost one round trip. */
  async usersOf(organizationId: EntityId, id: EntityId): Promise<ReadonlySet<EntityId> | null> {
    const channel = await this.channel(organizationId, id);
    if (channel === null) return null;
    const { participants } = takingPart.parse(JSON.parse(channel.json.toString()));
    return new Set(participants.flatMap(({ type, user_id: userId }) => (type === USER && userId ? [userId] : [])));
  }

  /** Channels that match all of the filter, newest first. */
  list(organizationId: EntityId, filter: ChannelFilter, page: ListPage): Promise<DocumentPage> {
    return this.#reader.page({ category: CHANNEL, organizationId, facets: facetsOfFilter(filter) }, page);
  }
}

/** The channel as it was before the block of events that `revision` is in: what a fold of that starts from. */
export async function channelBefore(
  history: HistoryReader,
  entity: HistoricEntity,
  revision: StreamRevision,
): Promise<ChannelState> {
  // Kept by this feature's own fold (see services/features.ts).
  return (await history.keptBefore(entity, 'channel', revision)) as ChannelState;
}
