/*
 * WARNING: these names are a contract with other teams, whose programs are written against them: add to them, never
 * rename or remove. CloudEvents 1.0 in binary mode: attributes are headers, the data is the value.
 */
import { z } from 'zod';
import { sequenceOf } from '#libs/kernel/event.ts';
import type { EventMetadata } from '#libs/kernel/event.ts';
import { CorruptEventError } from '#libs/kernel/faults.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { StoredEvent } from '#libs/platform/eventstore/index.ts';
import type { PublicEvents } from './public-event.ts';

/** In front of the type of an event, as `ce_type`. */
export const PUBLIC_TYPE_PREFIX = 'parley.';
/** Of an event that the relay does not know: one of a newer Parley. Its data is null. */
export const UNKNOWN_PUBLIC_EVENT = 'unknown';

/** As long as the largest number that is counted with, so that the texts are ordered as the numbers are. */
const SEQUENCE_DIGITS = 16;

export const publicMessageHeaders = z.object({
  ce_specversion: z.literal('1.0'),
  ce_id: z.string().min(1).describe('Of the event; the same each time it is sent'),
  ce_source: z.literal('/parley/channels'),
  ce_type: z.string().describe('What happened: `parley.` and the type'),
  ce_subject: z.string().describe('Id of the channel in which it happened'),
  ce_time: z.iso.datetime().describe('When it happened'),
  ce_sequence: z
    .string()
    .regex(/^\d{16}$/)
    .describe('Of the event in its channel: from 1, without holes, with leading zeros'),
  ce_organizationid: z.string().optional().describe('Organization of whoever did it'),
  traceparent: z.string().optional().describe('W3C Trace Context of the request that led to it'),
  'content-type': z.literal('application/json'),
});

/** A message as a producer of Kafka's takes it. */
export interface PublicMessage {
  readonly key: string;
  readonly value: string;
  /** As `publicMessageHeaders` describes them. */
  readonly headers: Record<string, string>;
}

export interface PublicMessagesParts {
  /** What the names of the streams begin with; those of all others stay unpublished. */
  readonly streamPrefix: string;
  /** Of every feature that writes in them. */
  readonly events: readonly PublicEvents[];
  /** Hears of an event that cannot be read, and is told of as an unknown one. */
  readonly onCorrupt: (error: CorruptEventError) => void;
}

/**
 * The events of channels as messages for other teams: what the feature that each is of says about it, and none of
 * what the log keeps beside it (who sent which command, under which key).
 */
export class PublicMessages {
  readonly #parts: PublicMessagesParts;
  readonly #ownerOf: ReadonlyMap<string, PublicEvents>;

  constructor(parts: PublicMessagesParts) {
    this.#parts = parts;
    this.#ownerOf = new Map(parts.events.flatMap((one) => [...one.storedTypes].map((type) => [type, one] as const)));
  }

  /** Null for an event that is nobody else's business. */
  encode(stored: StoredEvent): PublicMessage | null {
    const { streamPrefix } = this.#parts;
    if (!stored.stream.startsWith(streamPrefix)) return null;
    const id: EntityId = stored.stream.slice(streamPrefix.length);
    const told = this.#told(stored, id);
    const { type, json } = told?.event ?? { type: UNKNOWN_PUBLIC_EVENT, json: 'null' };
    const { at, organizationId, traceparent }: Partial<EventMetadata> = told?.metadata ?? {};
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
        ...(traceparent !== undefined && { traceparent }),
        'content-type': 'application/json',
      },
    };
  }

  #told(stored: StoredEvent, id: EntityId): ReturnType<PublicEvents['tell']> {
    try {
      return this.#ownerOf.get(stored.type)?.tell(stored, id) ?? null;
    } catch (error) {
      if (!(error instanceof CorruptEventError)) throw error;
      // What lies behind it is not kept back: its readers see from the sequence that there was something.
      this.#parts.onCorrupt(error);
      return null;
    }
  }
}
