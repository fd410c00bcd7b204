import { LRUCache } from 'lru-cache';
import { z } from 'zod';

import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { entity, type Facets } from '#libs/platform/entity/index.ts';
import type { Document } from '#libs/platform/readmodel/index.ts';

import { CHANNEL_READ_MODEL } from '../channel.keys.ts';
import { type Channel, channelCodec, type ChannelEvent, channelFold, type ChannelState } from './channel.ts';
import { channelResource } from './channel.resource.ts';

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

export function facetsOfList(filter: ChannelFilter): Facets {
  const facets = facetsOf(filter);
  const isFiltered = Object.values(facets).some((value) => value !== undefined);
  return isFiltered ? facets : { [baseOf(filter.archived)]: true };
}

/** The users that take part in a channel. */
export function usersIn({ participants }: Channel): EntityId[] {
  return participants.flatMap((one) => (one.type === 'authenticated_user' ? [one.userId] : []));
}

const MAX_BYTES = 16 * 1024 * 1024;
/** Memory of a user in a set: measured about 100 bytes, with its id. */
const USER_BYTES = 128;

const USER = 'authenticated_user';
const storedParticipants = z.object({
  participants: z.array(z.object({ type: z.string(), user_id: z.string().optional() })),
});

interface Users {
  /** Revision of the document. */
  readonly revision: StreamRevision;
  readonly ids: ReadonlySet<EntityId>;
}

/**
 * The users that participate in channels, from their documents. Each revision of a document is parsed once: every
 * participant asks for tickets, and a channel may have a thousand of them.
 */
export class ChannelUsers {
  readonly #known = new LRUCache<EntityId, Users>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ ids }) => (ids.size + 1) * USER_BYTES,
  });

  /** @param document of the channel, as it was just read */
  of(channelId: EntityId, { revision, json }: Document): ReadonlySet<EntityId> {
    const known = this.#known.get(channelId);
    if (known?.revision === revision) return known.ids;
    const { participants } = storedParticipants.parse(JSON.parse(json.toString()));
    const ids = new Set(participants.flatMap(({ type, user_id: id }) => (type === USER && id ? [id] : [])));
    this.#known.set(channelId, { revision, ids });
    return ids;
  }
}
