import type { EntityId } from '#libs/kernel/ids.ts';
import type { Document, DocumentPage, EntityReader, ListPage } from '#libs/platform/readmodel/index.ts';

import type { ChannelState } from './channel.decider.ts';
import { CHANNEL } from './channel.events.ts';
import type { Participant } from './channel.events.ts';
import { channelListKeys } from './channels.keys.ts';
import { facetsOfFilter } from './channels.projection.ts';
import type { ChannelFilter } from './channels.projection.ts';

/** Reads of channels: ready bytes from the read model. All throw the faults of `EntityReader`. */
export class ChannelQueries {
  readonly #reader: EntityReader;

  constructor(reader: EntityReader) {
    this.#reader = reader;
  }

  /** The channel, or null if it does not exist or is another organization's. */
  channel(organizationId: EntityId, id: EntityId): Promise<Document | null> {
    return this.#reader.document(CHANNEL, organizationId, id);
  }

  /** The channel's participants with the ids of their records, or null as for {@link channel}. */
  async participants(organizationId: EntityId, id: EntityId): Promise<readonly Participant[] | null> {
    // Written by this feature's own fold, as its part of the stream's state (see services/features.ts).
    const state = (await this.#reader.state(CHANNEL, organizationId, id)) as { readonly channel: ChannelState } | null;
    return state?.channel?.participants ?? null;
  }

  /** Channels that match all of the filter, newest first. */
  list(organizationId: EntityId, filter: ChannelFilter, page: ListPage): Promise<DocumentPage> {
    const list = channelListKeys(organizationId);
    return this.#reader.page({ noun: CHANNEL, organizationId, list, facets: facetsOfFilter(filter) }, page);
  }
}
