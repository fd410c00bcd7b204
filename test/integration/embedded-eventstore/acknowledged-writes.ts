// A load that records acknowledged appends, and a checker that compares them with
// the log afterwards.
import { type EventStoreDBClient, jsonEvent, NO_STREAM, type ResolvedEvent, START } from '@eventstore/db-client';

/** One event of the load: the `n`-th of its stream; `batch` and `size` tell which append it came with. */
export type LoadEvent = { n: number; batch: number; size: number };

/** How many events of each stream were acknowledged. */
export type Acknowledged = Map<string, number>;

/** The events of a log, per stream in its order. */
export type Found = Map<string, LoadEvent[]>;

/** The errors in `found` as sentences; empty when there are none. */
export function violations(acknowledged: Acknowledged, found: Found): string[] {
  const wrong: string[] = [];
  for (const [stream, count] of acknowledged) {
    const events = found.get(stream) ?? [];
    if (events.length < count) wrong.push(`${stream}: ${count} acknowledged, ${events.length} found`);
  }
  for (const [stream, events] of found) {
    for (const [index, event] of events.entries()) {
      if (event.n !== index) wrong.push(`${stream}: at ${index} stands event ${event.n}`);
    }
    const batches = Map.groupBy(events, (event) => event.batch);
    for (const [batch, members] of batches) {
      const size = members[0]?.size;
      if (members.length !== size) wrong.push(`${stream}: append ${batch} has ${members.length} of ${size} events`);
    }
  }
  return wrong;
}

/** The events of the load's streams: each stream by itself, and all of them from `$all`. */
export async function readBack(
  client: EventStoreDBClient,
  streams: Iterable<string>,
): Promise<{ streams: Found; all: Found }> {
  const own = new Map<string, LoadEvent[]>();
  for (const stream of streams) own.set(stream, []);
  const all: Found = new Map([...own.keys()].map((stream) => [stream, []]));
  let last = -1n;
  for await (const { event } of client.readAll({ fromPosition: START })) {
    if (!event || event.position.commit <= last) throw new Error('$all is not in order');
    last = event.position.commit;
    all.get(event.streamId)?.push(parse(event.data));
  }
  for (const [stream, events] of own) {
    for await (const { event } of client.readStream(stream)) events.push(parse(event?.data));
  }
  return { streams: own, all };
}

/** Appends small batches to `stream`, each at its exact revision, until an append fails. Notes each acknowledgement. */
export async function appendUntilFailure(
  client: EventStoreDBClient,
  stream: string,
  acknowledged: Acknowledged,
  onAcknowledged: () => void,
): Promise<void> {
  // After a crash the log may have more events than were acknowledged.
  let count = await length(client, stream);
  for (;;) {
    const size = 1 + (count % 5);
    const batch = count;
    const events = Array.from({ length: size }, (_, i) =>
      jsonEvent({ type: 'load', data: { n: count + i, batch, size, padding: 'x'.repeat(200) } }),
    );
    const expectedRevision = count === 0 ? NO_STREAM : BigInt(count - 1);
    try {
      await client.appendToStream(stream, events, { expectedRevision });
    } catch {
      return;
    }
    count += size;
    acknowledged.set(stream, count);
    onAcknowledged();
  }
}

async function length(client: EventStoreDBClient, stream: string): Promise<number> {
  let last: ResolvedEvent | undefined;
  try {
    for await (const read of client.readStream(stream, { direction: 'backwards', fromRevision: 'end', maxCount: 1 })) {
      last = read;
    }
  } catch (error) {
    if (error instanceof Error && 'type' in error && error.type === 'stream-not-found') return 0;
    throw error;
  }
  return Number(last?.event?.revision ?? -1n) + 1;
}

function parse(data: unknown): LoadEvent {
  if (typeof data !== 'object' || data === null) throw new Error('a torn event');
  const { n, batch, size } = { n: undefined, batch: undefined, size: undefined, ...data };
  if (typeof n !== 'number' || typeof batch !== 'number' || typeof size !== 'number') throw new Error('a torn event');
  return { n, batch, size };
}
