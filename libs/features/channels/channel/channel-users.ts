import { LRUCache } from 'lru-cache';
import { z } from 'zod';

import type { StreamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { Document } from '#libs/platform/readmodel/index.ts';

const MAX_BYTES = 16 * 1024 * 1024;
/** Memory of a user in a set: measured about 100 bytes, with its id. */
const USER_BYTES = 128;

const USER = 'authenticated_user';
const storedParticipants = z.object({
  participants: z.array(z.object({ type: z.string(), user_id: z.string().optional() })),
});

interface Users {
  /** That of the document. */
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
