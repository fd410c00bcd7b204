import { setTimeout as delay } from 'node:timers/promises';

import { z } from 'zod';

import { publishToRedis, subscribeToRedis } from '#libs/platform/redis/index.ts';
import type { Subscription } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { KEY_CHANGES_CHANNEL } from './key-changes.keys.ts';

const keyChange = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('changed'), keyId: z.string() }),
  z.object({ kind: z.literal('revoked'), keyId: z.string() }),
  z.object({ kind: z.literal('user-deactivated'), organizationId: z.string(), userId: z.string() }),
]);

const PUBLISH_WAIT_MS = 500;

/** A change that ends or alters what a key, or all keys of a user, may do. */
export type KeyChange = z.infer<typeof keyChange>;

export interface KeyChangeListener {
  onChange(change: KeyChange): void;
  /** Changes by other processes may have been missed; those after this call are received. */
  onGap(): void;
}

/** Port: announces a change to every process. Never throws: the change is in the log already. */
export interface KeyChangeAnnouncer {
  announce(change: KeyChange): Promise<void>;
}

/**
 * Announces changes of keys: to this process at once, whether Redis is available or not, to others by Redis pub/sub.
 * An announcement only makes a process read the log earlier; the log decides.
 */
export class KeyChanges implements KeyChangeAnnouncer {
  readonly #platform: Pick<Platform, 'redis' | 'log'>;
  /** One entry for each call of `subscribe`: two roles of a process may subscribe the same listener. */
  readonly #listeners = new Set<{ readonly listener: KeyChangeListener }>();
  #subscription: Subscription | null = null;

  constructor(platform: Pick<Platform, 'redis' | 'log'>) {
    this.#platform = platform;
  }

  async announce(change: KeyChange): Promise<void> {
    this.#pass(change);
    // A Redis that hangs must not hold up the answer to a command that has taken effect.
    await Promise.race([this.#publish(change), delay(PUBLISH_WAIT_MS, undefined, { ref: false })]);
  }

  /** The first listener opens the one connection that all of them share; the returned function ends it with the last. */
  subscribe(listener: KeyChangeListener): () => void {
    const entry = { listener };
    this.#listeners.add(entry);
    this.#subscription ??= this.#subscribe();
    return () => {
      if (!this.#listeners.delete(entry) || this.#listeners.size > 0) return;
      this.#subscription?.stop();
      this.#subscription = null;
    };
  }

  /**
   * Whether all announcements since a time have been received, except perhaps those of the last `withinMs`.
   *
   * @param sinceMs by `performance.now()`
   */
  areReceivedSince(sinceMs: number, withinMs: number): boolean {
    const received = this.#subscription?.received ?? null;
    return received !== null && received.since <= sinceMs && performance.now() - received.until < withinMs;
  }

  async #publish(change: KeyChange): Promise<void> {
    try {
      await publishToRedis(this.#platform.redis, KEY_CHANGES_CHANNEL, JSON.stringify(change));
    } catch (error) {
      // Processes that have lost Redis as well know it, and read the log for each decision.
      this.#platform.log.warn({ err: error }, 'a change of an API key was not announced to other processes');
    }
  }

  #subscribe(): Subscription {
    return subscribeToRedis(this.#platform.redis, KEY_CHANGES_CHANNEL, {
      onMessage: (text) => {
        const change = keyChange.safeParse(parseJson(text));
        if (change.success) this.#pass(change.data);
        // A newer version may announce what this one does not understand; it may concern any key.
        else this.#gap();
      },
      onListening: () => this.#gap(),
    });
  }

  #pass(change: KeyChange): void {
    for (const { listener } of this.#listeners) listener.onChange(change);
  }

  #gap(): void {
    for (const { listener } of this.#listeners) listener.onGap();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
