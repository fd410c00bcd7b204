import { z } from 'zod';

import type { EventStore, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { encodePosition } from '#libs/platform/eventstore/index.ts';
import { streamRevision } from '#libs/kernel/event.ts';
import type { RedisClient } from '#libs/platform/redis/index.ts';
import { textsOf } from '#libs/platform/redis/index.ts';

import { PROJECTION_KEYS } from './read-model.keys.ts';

const witnessSchema = z.object({
  stream: z.string().min(1),
  revision: z.int().nonnegative(),
  id: z.string().min(1),
  /** `commit/prepare`; for people. */
  position: z.string(),
});

/** An event that the read models hold. */
export type Witness = z.infer<typeof witnessSchema>;

/**
 * Remembers, beside the read models, an event that they were built from: the last one that a projector applied. A log
 * acknowledges events only when they are durable, so it always holds this event, unless it was lost, set back, or
 * replaced by another log. Positions alone do not show that: another log can be longer, and a checkpoint of
 * EventStoreDB may lie behind the last event.
 *
 * All methods throw `Fault` `store_unavailable`.
 */
export class LogWitness {
  readonly #redis: RedisClient;
  #unsaved: StoredEvent | null = null;

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** `event` was applied. */
  note(event: StoredEvent): void {
    this.#unsaved = event;
  }

  /** Saves the event that was noted last. To be called only while the read models are still those it was applied to. */
  async save(): Promise<void> {
    const event = this.#unsaved;
    if (event === null) return;
    const { stream, revision, id, position } = event;
    const text = JSON.stringify({ stream, revision, id, position: position ? encodePosition(position) : '' });
    await this.#redis.send(PROJECTION_KEYS.witness, (node) => node.set(PROJECTION_KEYS.witness, text));
    if (this.#unsaved === event) this.#unsaved = null;
  }

  /** @returns the event that the read models hold and `store` does not; null if there is none, or none was saved */
  async missingIn(store: EventStore): Promise<Witness | null> {
    const [text] = textsOf(await this.#redis.values([PROJECTION_KEYS.witness]));
    if (typeof text !== 'string') return null;
    const witness = witnessSchema.parse(JSON.parse(text));
    const from = streamRevision(witness.revision);
    for await (const event of store.readStream(witness.stream, { from, limit: 1 })) {
      if (event.revision === from && event.id === witness.id) return null;
    }
    return witness;
  }
}
