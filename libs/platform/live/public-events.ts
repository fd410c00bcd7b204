/*
 * WARNING: these names are a contract with other teams, on which their programs depend: add to them, never rename or
 * remove. CloudEvents 1.0 in binary mode: attributes are headers, the data is the value.
 */
import { validate as isUuid } from 'uuid';
import { z } from 'zod';

import { sequenceOf, type DomainEvent, type EventMetadata, type StreamEvent } from '#libs/kernel/event.ts';
import { CorruptEventError } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import { actorIn, type EventCodec, type StoredEvent } from '#libs/platform/eventstore/index.ts';

import { UNKNOWN_EVENT, type EventContent, type EventDescription } from './frames.ts';

/** Prefix of an event's type in `ce_type`. */
export const PUBLIC_TYPE_PREFIX = 'parley.';
/** Digits of the largest safe integer: texts sort like the numbers. */
const SEQUENCE_DIGITS = 16;

export const publicMessageHeaders = z.object({
  ce_specversion: z.literal('1.0'),
  ce_id: z.string().min(1).describe('Id of the event; the same in repeated messages'),
  ce_source: z.literal('/parley/channels'),
  ce_type: z.string().describe('`parley.` and the type of the event'),
  ce_subject: z.string().describe('Id of the channel'),
  ce_time: z.iso.datetime().describe('Time of the event'),
  ce_sequence: z
    .string()
    .regex(/^\d{16}$/)
    .describe('Sequence of the event in its channel: from 1, contiguous, with leading zeros'),
  ce_organizationid: z.string().optional().describe('Organization of the actor'),
  ce_authtype: z
    .enum(['app_user', 'service_account', 'system'])
    .optional()
    .describe('Kind of the actor (the extension Auth Context of CloudEvents): a user, a service, or Parley itself'),
  ce_authid: z.string().optional().describe('Id of the actor'),
  ce_authclaims: z.string().optional().describe('JSON: `key_id` and `on_behalf_of` of the actor, as in frames'),
  ce_correlationid: z.string().optional().describe('Id of the request (`x-request-id`) that led to the event'),
  traceparent: z.string().optional().describe('W3C Trace Context of the request that led to the event'),
  'content-type': z.literal('application/json'),
});

/** The events of a feature that are published for other teams. */
export interface PublicEvents {
  readonly described: readonly EventDescription[];
  readonly storedTypes: ReadonlySet<string>;
  /**
   * @param id of the channel
   * @returns null for an unknown type of event
   * @throws CorruptEventError
   */
  publish(stored: StoredEvent, id: EntityId): { readonly metadata: EventMetadata; readonly event: EventContent } | null;
}

/** Declares the published events of a feature. */
export function publicEvents<E extends DomainEvent>(of: {
  readonly codec: EventCodec<E>;
  readonly described: readonly EventDescription[];
  readonly publish: (event: StreamEvent<E>, id: EntityId) => EventContent;
}): PublicEvents {
  const { codec, described, publish } = of;
  return {
    described,
    storedTypes: codec.types,
    publish(stored, id) {
      const event = codec.decode(stored);
      return event && { metadata: event.metadata, event: publish(event, id) };
    },
  };
}

export interface PublicMessage {
  readonly key: string;
  readonly value: string;
  readonly headers: Record<string, string>;
}

export interface PublicMessagesParts {
  /** Only events of streams with this prefix are published. */
  readonly streamPrefix: string;
  /** Those of all features that write to these streams. */
  readonly events: readonly PublicEvents[];
  /** Called for an event that cannot be decoded; it is published with the type `unknown`. */
  readonly onCorrupt: (error: CorruptEventError) => void;
}

/**
 * Encodes the events of channels as messages for other teams, from what the event's feature publishes. Internal
 * metadata, such as command ids and idempotency keys, is not published.
 */
export class PublicMessages {
  readonly #parts: PublicMessagesParts;
  readonly #ownerOf: ReadonlyMap<string, PublicEvents>;

  constructor(parts: PublicMessagesParts) {
    this.#parts = parts;
    this.#ownerOf = new Map(parts.events.flatMap((one) => [...one.storedTypes].map((type) => [type, one] as const)));
  }

  /** @returns null for an event that is not published */
  encode(stored: StoredEvent): PublicMessage | null {
    const { streamPrefix } = this.#parts;
    if (!stored.stream.startsWith(streamPrefix)) return null;
    const id: EntityId = stored.stream.slice(streamPrefix.length);
    // A foreign event in a stream of Parley has a message, so that sequences are contiguous.
    if (stored.foreign !== undefined && !isUuid(id)) return null;
    const published = this.#publish(stored, id);
    const { type, json } = published?.event ?? { type: UNKNOWN_EVENT, json: 'null' };
    const { at, organizationId, traceparent }: Partial<EventMetadata> = published?.metadata ?? {};
    return {
      key: stored.stream,
      value: json,
      headers: {
        ce_specversion: '1.0',
        ce_id: stored.id,
        ce_source: '/parley/channels',
        ce_type: PUBLIC_TYPE_PREFIX + type,
        ce_subject: id,
        ce_time: at ?? new Date(stored.createdMs).toISOString(),
        ce_sequence: String(sequenceOf(stored.revision)).padStart(SEQUENCE_DIGITS, '0'),
        ...(organizationId !== undefined && { ce_organizationid: organizationId }),
        ...actorHeaders(stored, published),
        ...(traceparent !== undefined && { traceparent }),
        'content-type': 'application/json',
      },
    };
  }

  #publish(stored: StoredEvent, id: EntityId): ReturnType<PublicEvents['publish']> {
    try {
      return this.#ownerOf.get(stored.type)?.publish(stored, id) ?? null;
    } catch (error) {
      if (!(error instanceof CorruptEventError)) throw error;
      // Must not block later events; the sequence shows consumers that there is an event.
      this.#parts.onCorrupt(error);
      return null;
    }
  }
}

const AUTH_TYPES = { user: 'app_user', service: 'service_account', system: 'system' } as const;

/** The extensions Auth Context and Correlation of CloudEvents. An event of a newer version has an actor as well. */
function actorHeaders(stored: StoredEvent, published: ReturnType<PublicEvents['publish']>): Record<string, string> {
  const actor = actorIn(stored.metadata);
  if (actor === null) return {};
  const claims = { key_id: actor.keyId ?? null, on_behalf_of: published?.event.onBehalfOf ?? null };
  const { $correlationId, commandId }: Partial<EventMetadata> = published?.metadata ?? {};
  // By default it is the id of the command, which is not published.
  const isOfRequest = $correlationId !== undefined && $correlationId !== commandId;
  return {
    ce_authtype: AUTH_TYPES[actor.type],
    ce_authid: actor.id,
    ce_authclaims: JSON.stringify(claims),
    ...(isOfRequest && { ce_correlationid: $correlationId }),
  };
}
