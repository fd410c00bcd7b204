/*
 * The log is shared: other applications, tools and the event store itself write to it. Parley recognizes its own events
 * by their metadata. An event without it is foreign, whatever its type and its stream are called.
 */
import { z } from 'zod';

import type { Actor, EventMetadata } from '#libs/kernel/event.ts';

import type { ForeignReason, StoredEvent } from './event-store.ts';

/** The shape of metadata in the log. Other keys are allowed, and dropped. */
export const eventMetadataSchema = z.object({
  at: z.iso.datetime(),
  organizationId: z.string().min(1),
  actor: z.object({
    type: z.enum(['user', 'service', 'system']),
    id: z.string().min(1),
    keyId: z.string().optional(),
  }),
  commandId: z.string().min(1),
  $correlationId: z.string().min(1),
  $causationId: z.string().min(1),
  traceparent: z.string().optional(),
  idempotencyKey: z.string().optional(),
}) satisfies z.ZodType<EventMetadata>;

const withActor = eventMetadataSchema.pick({ actor: true });

/** The actor in the metadata of a stored event; null for a foreign event. */
export function actorIn(metadata: unknown): Actor | null {
  return withActor.safeParse(metadata).data?.actor ?? null;
}

/** Every event of Parley has had these from the beginning. */
const REQUIRED = Object.entries(eventMetadataSchema.shape).flatMap(([name, schema]) =>
  schema instanceof z.ZodOptional ? [] : [name],
);

/**
 * Null for an event of Parley. That does not mean that it is valid: an event with all members of Parley's metadata is
 * Parley's, and an invalid value or body is damage (`CorruptEventError`).
 */
export function foreignReason(type: string, metadata: unknown): ForeignReason | null {
  if (type.startsWith('$')) return 'system_type';
  if (typeof metadata !== 'object' || metadata === null || metadata instanceof Uint8Array) return 'no_metadata';
  if (!('organizationId' in metadata)) return 'no_organization';
  return REQUIRED.every((name) => name in metadata) ? null : 'metadata';
}

/** The type of every foreign event. */
export const FOREIGN_TYPE = '(foreign)';

/** The event itself if it is one of Parley's; else its place, see {@link StoredEvent}. */
export function withoutForeignContent(event: StoredEvent): StoredEvent {
  const foreign = foreignReason(event.type, event.metadata);
  return foreign === null ? event : { ...event, type: FOREIGN_TYPE, data: null, metadata: null, foreign };
}

/** A foreign event, as it was read. */
export interface ForeignEvent {
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly reason: ForeignReason;
}

/** Counts the foreign events that a process has read, each time that it read them. */
export class ForeignEvents {
  readonly counts = new Map<ForeignReason, number>();
  readonly #onForeign: ((event: ForeignEvent, count: number) => void) | undefined;

  /** @param onForeign called with the 1st, 10th, 100th, … event of each reason */
  constructor(onForeign?: (event: ForeignEvent, count: number) => void) {
    this.#onForeign = onForeign;
  }

  /** @param type as it was stored */
  note({ stream, revision, foreign: reason }: StoredEvent, type: string): void {
    if (reason === undefined) return;
    const count = (this.counts.get(reason) ?? 0) + 1;
    this.counts.set(reason, count);
    if (/^10*$/.test(String(count))) this.#onForeign?.({ stream, revision, type, reason }, count);
  }
}
