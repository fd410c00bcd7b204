import {
  eventIdentity,
  type EventIdentity,
  holdsEvent,
  identityOf,
  type StoredEvent,
  type WitnessedLog,
} from '#libs/platform/eventstore/index.ts';
import { textsOf, type RedisClient } from '#libs/platform/redis/index.ts';
import { parseStreamName } from '#libs/platform/streams/index.ts';

import { projectionKeys, type ReadModelName } from './read-model.keys.ts';

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
        const text = JSON.stringify(identityOf(event));
        await this.#redis.send(key, (node) => node.set(key, text));
        if (this.#unsaved.get(key) === event) this.#unsaved.delete(key);
      }),
    );
  }

  /** An event for each category whose read models hold any. */
  async saved(): Promise<EventIdentity[]> {
    const texts = textsOf(await this.#redis.values([...this.#keys.values()]));
    return texts.flatMap((text) => (text === null ? [] : [eventIdentity.parse(JSON.parse(text))]));
  }

  /** @returns an event that the read models hold and the log does not; null if there is none, or none was saved */
  async missingIn(log: WitnessedLog): Promise<EventIdentity | null> {
    for (const witness of await this.saved()) {
      if (!(await holdsEvent(log, witness))) return witness;
    }
    return null;
  }
}
