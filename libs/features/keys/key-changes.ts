import { setTimeout as delay } from 'node:timers/promises';

import { z } from 'zod';

import { publishToRedis, subscribeToRedis } from '#libs/platform/redis/index.ts';
import type { Subscription } from '#libs/platform/redis/index.ts';
import type { Platform } from '#libs/platform/runtime/index.ts';

import { KEY_CHANGES_CHANNEL } from './keys.keys.ts';

const keyChange = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('changed'), keyId: z.string() }),
  z.object({ kind: z.literal('revoked'), keyId: z.string() }),
  z.object({ kind: z.literal('user-deactivated'), organizationId: z.string(), userId: z.string() }),
]);

const PUBLISH_WAIT_MS = 500;

/** What those who remember authenticated keys have to know at once. */
export type KeyChange = z.infer<typeof keyChange>;

/** Somebody who remembers keys. */
export interface KeyMemory {
  forget(change: KeyChange): void;
  /** `hears`: whether changes made by other processes are heard. On each change of it, old memories are worthless. */
  setHearing(hears: boolean): void;
}

/** Port: tells every process of a change. Never throws: what it announces has happened already. */
export interface KeyChangeAnnouncer {
  announce(change: KeyChange): Promise<void>;
}

/**
 * Changes of keys travel between processes by Redis pub/sub. Who makes a change tells its own process first,
 * whether Redis is there or not.
 */
export class KeyChanges implements KeyChangeAnnouncer {
  readonly #platform: Pick<Platform, 'redis' | 'log'>;
  readonly #memories = new Set<KeyMemory>();
  #subscription: Subscription | null = null;

  constructor(platform: Pick<Platform, 'redis' | 'log'>) {
    this.#platform = platform;
  }

  async announce(change: KeyChange): Promise<void> {
    for (const memory of this.#memories) memory.forget(change);
    // A Redis that hangs must not hold up an answer: what it is to tell has happened.
    await Promise.race([this.#publish(change), delay(PUBLISH_WAIT_MS, undefined, { ref: false })]);
  }

  async #publish(change: KeyChange): Promise<void> {
    try {
      await publishToRedis(this.#platform.redis, KEY_CHANGES_CHANNEL, JSON.stringify(change));
    } catch (error) {
      // Others that cannot be reached through Redis do not hear it either, and know that they are deaf.
      this.#platform.log.warn({ err: error }, 'a change of an API key was not announced to other processes');
    }
  }

  /** Keeps `memory` up to date until the returned function is called. However many there are: one connection. */
  inform(memory: KeyMemory): () => void {
    this.#memories.add(memory);
    if (this.#subscription === null) this.#subscription = this.#subscribe();
    else if (this.#subscription.listening) memory.setHearing(true);
    return () => {
      if (!this.#memories.delete(memory) || this.#memories.size > 0) return;
      this.#subscription?.stop();
      this.#subscription = null;
    };
  }

  #subscribe(): Subscription {
    const setHearing = (hears: boolean): void => {
      for (const memory of this.#memories) memory.setHearing(hears);
    };
    return subscribeToRedis(this.#platform.redis, KEY_CHANGES_CHANNEL, {
      onMessage: (text) => {
        const change = keyChange.safeParse(parseJson(text));
        // From a newer version, perhaps: what is not understood may concern everybody.
        if (!change.success) return setHearing(true);
        for (const memory of this.#memories) memory.forget(change.data);
      },
      onListening: () => setHearing(true),
      onDeaf: () => setHearing(false),
    });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
