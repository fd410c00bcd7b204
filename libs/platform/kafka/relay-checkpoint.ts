/*
 * WARNING: relays of other versions read this text, which the consumer group of the relays stores with its offset: add
 * members, never rename or remove.
 */
import { z } from 'zod';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import {
  comparePositions,
  decodePosition,
  encodePosition,
  eventIdentity,
  type EventIdentity,
  type LogStart,
} from '#libs/platform/eventstore/index.ts';

/** Where each refusing partition of a topic resumes, by the number of the partition. */
export interface RefusingTopic {
  /** Partition count of the topic, which determines the partition of a key. */
  readonly partitions: number;
  readonly after: ReadonlyMap<number, LogStart>;
}

/** How far a relay has come. */
export interface RelayCheckpoint {
  /** Everything up to it is published, except in refusing partitions; null for nothing. */
  readonly position: GlobalPosition | null;
  /** Position of the last event that was published. `position` is later where no event followed. */
  readonly sent: GlobalPosition | null;
  /** The last event, which identifies the log; null where a relay of an older version has saved the position. */
  readonly last: EventIdentity | null;
  readonly refusing: ReadonlyMap<string, RefusingTopic>;
}

export const NOTHING_PUBLISHED: RelayCheckpoint = { position: null, sent: null, last: null, refusing: new Map() };

const checkpointSchema = z.object({
  position: z.string(),
  sent: z.string().nullable(),
  last: eventIdentity.nullable(),
  /** By topic; `after` lists partitions by the position that they resume after. */
  refusing: z.record(
    z.string(),
    z.object({ partitions: z.int().positive(), after: z.record(z.string(), z.array(z.int().nonnegative())) }),
  ),
});

/** Brokers store 4,096 bytes with an offset, by default. */
const MAX_BYTES = 3_800;

/** At most {@link MAX_BYTES} bytes, except for names of topics and streams that are longer than Parley's. */
export function encodeCheckpoint(checkpoint: RelayCheckpoint & { readonly position: GlobalPosition }): string {
  const text = encodeWith(checkpoint, (topic) => topic);
  if (Buffer.byteLength(text) <= MAX_BYTES) return text;
  // The next relay repeats a part of what was published.
  return encodeWith(checkpoint, resumingTogether);
}

function encodeWith(
  { position, sent, last, refusing }: RelayCheckpoint & { readonly position: GlobalPosition },
  toStored: (topic: RefusingTopic) => RefusingTopic,
): string {
  const topics = [...refusing].map(([name, topic]) => {
    const { partitions, after } = toStored(topic);
    const byPosition = new Map<string, number[]>();
    for (const [partition, from] of after) {
      const key = from === 'start' ? from : encodePosition(from);
      byPosition.set(key, [...(byPosition.get(key) ?? []), partition]);
    }
    return [name, { partitions, after: Object.fromEntries(byPosition) }];
  });
  return JSON.stringify({
    position: encodePosition(position),
    sent: sent && encodePosition(sent),
    last,
    refusing: Object.fromEntries(topics),
  });
}

/** All refusing partitions resume after the position of the one that is furthest behind. */
export function resumingTogether({ partitions, after }: RefusingTopic): RefusingTopic {
  const least = earliest([...after.values()]);
  return { partitions, after: new Map([...after.keys()].map((partition) => [partition, least])) };
}

/** @throws RangeError, SyntaxError or ZodError for a text that no relay has saved */
export function decodeCheckpoint(text: string | null): RelayCheckpoint {
  if (text === null) return NOTHING_PUBLISHED;
  // Relays before version 0.2 saved the position alone.
  if (!text.startsWith('{')) {
    const position = decodePosition(text);
    return { position, sent: position, last: null, refusing: new Map() };
  }
  const { position, sent, last, refusing } = checkpointSchema.parse(JSON.parse(text));
  const topics = Object.entries(refusing).map(([name, { partitions, after }]) => {
    const positions = Object.entries(after).flatMap(([from, numbers]) =>
      numbers.map((partition) => [partition, from === 'start' ? ('start' as const) : decodePosition(from)] as const),
    );
    return [name, { partitions, after: new Map<number, LogStart>(positions) }] as const;
  });
  return {
    position: decodePosition(position),
    sent: sent === null ? null : decodePosition(sent),
    last,
    refusing: new Map(topics),
  };
}

/** The position up to which a topic holds all messages, according to a saved checkpoint; null for nothing. */
export function publishedIn(topic: string, saved: string | null): GlobalPosition | null {
  const { position, refusing } = decodeCheckpoint(saved);
  const waiting = [...(refusing.get(topic)?.after.values() ?? [])];
  const least = waiting.length === 0 ? position : earliest(waiting);
  return least === 'start' ? null : least;
}

/** The first of these in the log; `start` if there are none. */
export function earliest(starts: readonly LogStart[]): LogStart {
  const [first = 'start', ...rest] = starts;
  return rest.reduce((least, one) => (isEarlier(one, least) ? one : least), first);
}

function isEarlier(one: LogStart, other: LogStart): boolean {
  if (other === 'start') return false;
  return one === 'start' || comparePositions(one, other) < 0;
}
