import type { z } from 'zod';
import type { DomainEvent, EventMetadata, StreamEvent } from '#libs/kernel/event.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventCodec, StoredEvent } from '#libs/platform/eventstore/index.ts';

/** One type of event as other teams are told of it. */
export interface PublicEventType {
  /** Such as `interaction.posted`. */
  readonly type: string;
  readonly summary: string;
  readonly data: z.ZodType;
}

/** What other teams are told of one event. */
export interface PublicEvent {
  readonly type: string;
  /** JSON text of the data. */
  readonly json: string;
}

/** What a feature lets other teams know of its events. */
export interface PublicEvents {
  readonly described: readonly PublicEventType[];
  /** Types as they are stored. */
  readonly storedTypes: ReadonlySet<string>;
  /**
   * @param id that the stream's name ends with
   * @throws CorruptEventError
   */
  tell(stored: StoredEvent, id: EntityId): { readonly metadata: EventMetadata; readonly event: PublicEvent } | null;
}

export function publicEvents<E extends DomainEvent>(of: {
  readonly codec: EventCodec<E>;
  readonly described: readonly PublicEventType[];
  readonly tell: (event: StreamEvent<E>, id: EntityId) => PublicEvent;
}): PublicEvents {
  return {
    described: of.described,
    storedTypes: of.codec.types,
    tell(stored, id) {
      const event = of.codec.decode(stored);
      return event === null ? null : { metadata: event.metadata, event: of.tell(event, id) };
    },
  };
}
