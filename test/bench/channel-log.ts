/** A log of channels as a server would have written it: many of them active at a time, a few events each turn. */
import type { ChannelEvent } from '#libs/features/channels/channel/channel.ts';
import { type StreamRevision, streamRevision } from '#libs/kernel/event.ts';
import { derivedId, eventIdOf } from '#libs/kernel/ids.ts';
import { metadataOf } from '#libs/platform/commands/index.ts';
import type { EventToAppend, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { randomFrom } from '#test/support/channel-history.ts';

import { benchChannel, metadataFor } from './appended-event.ts';

const NAMESPACE = '0192f5b2-3c68-7aa4-9f5c-2f5a8b0f3a12';

/** Events to append to one stream at a revision. */
export interface Turn {
  readonly stream: string;
  readonly after: StreamRevision;
  readonly events: readonly EventToAppend[];
}

export interface LogShape {
  readonly events: number;
  /** Events of a channel until another replaces it. */
  readonly eventsPerChannel: number;
  /** Channels that are active at a time. */
  readonly active: number;
}

/** The same for the same shape, always. */
export function* channelTurns({ events, eventsPerChannel, active }: LogShape): Generator<Turn> {
  const random = randomFrom(7);
  const channels: { id: string; next: number }[] = [];
  let made = 0;
  let born = 0;
  while (made < events) {
    const at = random(active);
    let channel = channels[at];
    if (channel === undefined || channel.next >= eventsPerChannel) {
      channel = channels[at] = { id: derivedId(NAMESPACE, String(born++)), next: 0 };
    }
    const { id, next: first } = channel;
    const size = Math.min(1 + random(4), eventsPerChannel - first, events - made);
    const turn = Array.from({ length: size }, (_, index) => toAppend(id, first + index, eventOf(id, first + index)));
    channel.next += size;
    made += size;
    yield { stream: `channel-${id}`, after: streamRevision(first - 1), events: turn };
  }
}

/** The same log as a feed would deliver it. */
export function storedEvents(shape: LogShape): StoredEvent[] {
  return [...channelTurns(shape)].flatMap(({ stream, after, events }) =>
    events.map((event, index) => ({
      ...event,
      stream,
      revision: streamRevision(after + 1 + index),
      position: null,
      createdMs: 0,
    })),
  );
}

function eventOf(id: string, n: number): ChannelEvent {
  if (n === 0) return { type: 'ChannelCreated.v1', data: { ...benchChannel(), id, participants: [] } };
  switch (n % 4) {
    case 1:
      return {
        type: 'ParticipantAdded.v1',
        data: {
          participant: {
            type: 'authenticated_user',
            participantId: `${id}-${n % 5}`,
            userId: `user-${n % 5}`,
            displayName: 'Ada Lovelace',
            imageUrl: null,
            isOwner: false,
          },
        },
      };
    case 2:
      return { type: 'ChannelMetaDataChanged.v1', data: { metaData: { order: n, tags: ['delivery', 'urgent'] } } };
    case 3:
      return { type: 'ParticipantRemoved.v1', data: { participantId: `${id}-${(n - 2) % 5}` } };
    default:
      return { type: 'ChannelRenamed.v1', data: { name: `Support of order ${n}` } };
  }
}

function toAppend(id: string, n: number, event: ChannelEvent): EventToAppend {
  const commandId = derivedId(NAMESPACE, `${id}/${n}`);
  const metadata = metadataOf({ commandId, ...metadataFor(commandId) });
  return { ...event, id: eventIdOf(commandId, 0), metadata };
}
