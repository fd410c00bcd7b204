import { z } from 'zod';

import { accept, refuse } from '#libs/kernel/decider.ts';
import { sequenceOf, streamRevision } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { CommandContext } from '#libs/platform/commands/index.ts';
import { Entities, entity, type EntityResult, type NotFound } from '#libs/platform/entity/index.ts';
import { sendToUser } from '#libs/platform/live/index.ts';
import { FunctionLibrary } from '#libs/platform/redis/index.ts';
import type { Core } from '#libs/platform/runtime/index.ts';

import { usersIn } from '../channel/channel.read.ts';
import type { Channel } from '../channel/channel.ts';
import { CHANNEL, channelKeys, joinedField } from '../channel.keys.ts';
import type { Channels } from '../channels.ts';
import type { readMarkerSchema, shownMarker } from '../channel/channel.resource.ts';
import {
  decideMove,
  READ_MARKER,
  type ReadMarker,
  readMarkerCodec,
  type ReadMarkerEvent,
  readMarkerFold,
  readMarkerId,
  type ReadMarkerState,
} from './read-marker.ts';

export const readMarkerEntity = entity<ReadMarkerState, ReadMarkerEvent, {}>({
  category: READ_MARKER,
  version: 1,
  codec: readMarkerCodec,
  fold: readMarkerFold,
  resource: ({ sequence, modified }) => ({ sequence, moved_at: modified }),
  facets: () => ({}),
  isListed: false,
});

/** `not_reached`: the channel has not reached the sequence. */
export type MoveRejection = NotFound | { readonly reason: 'not_a_participant' | 'not_reached' };

type ShownMarker = z.output<typeof shownMarker>;
export type CountedMarker = z.output<typeof readMarkerSchema>;

const counted = z.tuple([z.int(), z.int()]);
/** For as long a client ignores frames that arrive after newer ones. */
const FRAME_TTL_MS = 24 * 60 * 60 * 1000;

/**
 * How far users have read in channels: up to their marker, or up to their last message if that is further. For the number of
 * unread messages, also their joining counts. The read model of the channel holds messages and joining.
 *
 * All methods throw the faults of `Entities`. Omission: a frame is published once, and may be lost.
 */
export class ReadMarkers {
  readonly #core: Core;
  readonly #channels: Pick<Channels, 'entities' | 'usersOf'>;
  readonly #markers: Entities<ReadMarkerState, ReadMarkerEvent, {}>;
  readonly #functions: FunctionLibrary;

  constructor(core: Core, channels: Pick<Channels, 'entities' | 'usersOf'>) {
    this.#core = core;
    this.#channels = channels;
    this.#markers = new Entities(readMarkerEntity, core);
    this.#functions = new FunctionLibrary(core.redis, new URL('./lua/unread.lua', import.meta.url));
  }

  /** Moves the user's marker forward to the sequence, if it is not there yet. */
  async move(context: CommandContext, move: ReadMarkerEvent['data']): Promise<EntityResult<ReadMarker, MoveRejection>> {
    const { channelId, userId, sequence } = move;
    const { ifMatch, ...unconditional } = context;
    const { organizationId } = context;
    const isOpen = (channel: Channel | null): boolean =>
      channel?.organizationId === organizationId && usersIn(channel).includes(userId);
    const { entities } = this.#channels;
    // A channel of which this process knows the events up to there is not read again.
    if (ifMatch !== undefined || !entities.isKnown(channelId, streamRevision(sequence - 1), isOpen)) {
      const { commandId, actor, at } = context;
      const found = await entities.update<MoveRejection>(
        { commandId, organizationId, actor, at, ifMatch },
        channelId,
        (channel) => (isOpen(channel) ? accept() : refuse({ reason: 'not_a_participant' })),
      );
      if (!found.ok) return found;
      if (sequence > sequenceOf(found.revision)) return { ok: false, rejection: { reason: 'not_reached' } };
    }
    return this.#markers.run(unconditional, readMarkerId(move), (state) => decideMove(state, move));
  }

  /** How far the user has read in each of the channels, in their order. */
  async of(organizationId: EntityId, userId: EntityId, channelIds: readonly EntityId[]): Promise<CountedMarker[]> {
    const stored = await this.#stored(
      organizationId,
      channelIds.map((channelId) => ({ channelId, userId })),
    );
    return Promise.all(
      channelIds.map(async (channelId, index) => {
        const marker = stored[index];
        const [sequence, unread] = await this.#counted({ organizationId, channelId, userId }, marker?.sequence ?? 0);
        const shown = { user_id: userId, sequence, moved_at: marker?.modified ?? null };
        return { channel_id: channelId, ...shown, unread_count: unread };
      }),
    );
  }

  async one(organizationId: EntityId, userId: EntityId, channelId: EntityId): Promise<CountedMarker> {
    const [marker] = await this.of(organizationId, userId, [channelId]);
    if (marker === undefined) throw new TypeError('a marker is missing');
    return marker;
  }

  /** How far each user that takes part in the channel has read; null if the organization has no such channel. */
  async ofParticipants(organizationId: EntityId, channelId: EntityId): Promise<ShownMarker[] | null> {
    const users = await this.#channels.usersOf(organizationId, channelId);
    if (users === null) return null;
    const ids = [...users];
    const { read } = channelKeys(organizationId, channelId);
    const [stored, own] = await Promise.all([
      this.#stored(
        organizationId,
        ids.map((userId) => ({ channelId, userId })),
      ),
      this.#core.reader.part({ category: CHANNEL, organizationId, id: channelId }, () =>
        this.#core.collections.fields(read, ids),
      ),
    ]);
    return ids.map((id, index) => ({
      user_id: id,
      sequence: Math.max(stored[index]?.sequence ?? 0, Number(own?.[index] ?? 0)),
      moved_at: stored[index]?.modified ?? null,
    }));
  }

  /** Sends the marker to the user's sockets and event streams of the channel. */
  async publish(organizationId: EntityId, marker: CountedMarker): Promise<void> {
    const { channel_id: channelId, user_id: userId, sequence: n } = marker;
    const value = { key: `read_marker:${userId}`, n, json: JSON.stringify(marker), ttlMs: FRAME_TTL_MS };
    await sendToUser(this.#core.redis, { organizationId, channelId, userId }, value);
  }

  #stored(organizationId: EntityId, of: readonly Parameters<typeof readMarkerId>[0][]) {
    return Promise.all(of.map((one) => this.#markers.projected(organizationId, readMarkerId(one))));
  }

  /** The sequence up to which the user has read, and the number of messages after it. */
  async #counted(
    of: { readonly organizationId: EntityId; readonly channelId: EntityId; readonly userId: EntityId },
    marker: number,
  ): Promise<[sequence: number, unread: number]> {
    const { organizationId, channelId, userId } = of;
    const { read, messages } = channelKeys(organizationId, channelId);
    const call = { name: 'parley_unread_v1', keys: [read, messages], args: [marker, userId, joinedField(userId)] };
    const found = await this.#core.reader.part({ category: CHANNEL, organizationId, id: channelId }, () =>
      this.#functions.callAll([call]),
    );
    return counted.parse(found?.[0]);
  }
}
