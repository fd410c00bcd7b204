import { z } from 'zod';

import { comparePositions, decodePosition, encodePosition } from '#libs/platform/eventstore/index.ts';
import type { EventStore, LogFeed, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import { textsOf, type RedisClient } from '#libs/platform/redis/index.ts';

import { parseStreamName } from './projection.ts';
import { projectionKeys, type ReadModelName } from './read-model.keys.ts';

const witnessSchema = z.object({
  stream: z.string().min(1),
  revision: z.int().nonnegative(),
  id: z.string().min(1),
  /** `commit/prepare`, for messages. */
  position: z.string(),
});

/** The log, as far as witnesses are looked up in it. */
export interface WitnessedLog {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly feed: Pick<LogFeed, 'head' | 'idAt' | 'mayHaveRemoved'>;
}

/** An event that the read models hold. */
export type Witness = z.infer<typeof witnessSchema>;

/**
 * Keeps, beside the read models of each category, an event that they were built from: the last one that a projector
 * applied. A log acknowledges events only when they are durable, so it always holds these events, unless it was lost,
 * set back, or replaced by another log. Positions alone do not show that: another log can be longer, and a checkpoint of
 * EventStoreDB may lie behind the last event.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class LogWitness {
  readonly #redis: RedisClient;
  /** Key of the witness, by category. */
  readonly #keys: ReadonlyMap<string, string>;
  /** By key, the last event that was applied and is not saved. */
  readonly #unsaved = new Map<string, StoredEvent>();

  constructor(redis: RedisClient, names: readonly ReadModelName[]) {
    this.#redis = redis;
    this.#keys = new Map(names.map((name) => [name.category, projectionKeys(name).witness]));
  }

  /** `events` were applied, in this order. */
  note(events: readonly StoredEvent[]): void {
    for (const event of events) {
      // The other application may delete it.
      if (event.foreign !== undefined) continue;
      const key = this.#keys.get(parseStreamName(event.stream).category);
      if (key !== undefined) this.#unsaved.set(key, event);
    }
  }

  /** Saves the last events. To be called only while the read models are still those that they were applied to. */
  async save(): Promise<void> {
    await Promise.all(
      [...this.#unsaved].map(async ([key, event]) => {
        const { stream, revision, id, position } = event;
        const text = JSON.stringify({ stream, revision, id, position: position ? encodePosition(position) : '' });
        await this.#redis.send(key, (node) => node.set(key, text));
        if (this.#unsaved.get(key) === event) this.#unsaved.delete(key);
      }),
    );
  }

  /** One event for each category whose read models hold any. */
  async saved(): Promise<Witness[]> {
    const texts = textsOf(await this.#redis.values([...this.#keys.values()]));
    return texts.flatMap((text) => (text === null ? [] : [witnessSchema.parse(JSON.parse(text))]));
  }

  /** @returns an event that the read models hold and the log does not; null if there is none, or none was saved */
  async missingIn(log: WitnessedLog): Promise<Witness | null> {
    for (const witness of await this.saved()) {
      if (!(await isIn(log, witness))) return witness;
    }
    return null;
  }
}

/**
 * Operators delete and truncate streams, and limit their age or length: then the event may be missing in the log that it
 * is of. The log must still reach its position; a log that was set back does not, even if its operator limits streams.
 */
async function isIn({ store, feed }: WitnessedLog, { stream, revision, id, position }: Witness): Promise<boolean> {
  const from = streamRevision(revision);
  for await (const event of store.readStream(stream, { from, limit: 1, needs: 'nothing' })) {
    if (event.revision === from) return event.id === id;
  }
  if (position === '') return feed.mayHaveRemoved(stream, from);
  const at = decodePosition(position);
  const head = await feed.head();
  if (head === null || comparePositions(head, at) < 0) return false;
  // Removed from the stream, and still in the files.
  return (await feed.idAt(at)) === id || feed.mayHaveRemoved(stream, from);
}
