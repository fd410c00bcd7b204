import { setTimeout as delay } from 'node:timers/promises';

import { z } from 'zod';

import { publishToRedis, type RedisClient, subscribeToRedis, type Subscription } from '#libs/platform/redis/index.ts';

import { ANNOUNCEMENTS_CHANNEL } from './announcements.keys.ts';

const announcedChange = z.discriminatedUnion('kind', [
  /** Of an API key that still works. */
  z.object({ kind: z.literal('changed'), keyId: z.string() }),
  z.object({ kind: z.literal('revoked'), keyId: z.string() }),
  z.object({ kind: z.literal('user-deactivated'), organizationId: z.string(), userId: z.string() }),
  /** The keys of a token issuer, or whether it may issue at all. */
  z.object({ kind: z.literal('issuer-changed'), issuerId: z.string() }),
  /** A participant was removed from a channel. */
  z.object({ kind: z.literal('participant-removed'), organizationId: z.string(), channelId: z.string() }),
  /** Versions of Parley that do not know this kind read all keys again. */
  z.object({ kind: z.literal('organization-changed') }),
]);

/** How long a command waits for the publication of its change. */
const PUBLISH_WAIT_MS = 500;

export type AnnouncedChange = z.infer<typeof announcedChange>;

export interface ChangeListener {
  onChange(change: AnnouncedChange): void;
  /** Changes by other processes may have been missed; those after this call are received. */
  onGap(): void;
}

interface Stores {
  readonly redis: RedisClient;
  readonly log: { warn(fields: object, message: string): void };
}

/**
 * Announces changes of access and of organizations: to this process immediately, even without Redis, and to others by Redis
 * pub/sub. An announcement only makes a process read the log, or the read model, earlier; these decide.
 */
export class Announcements {
  readonly #stores: Stores;
  /** In the order in which they listen. */
  readonly #listeners = new Set<ChangeListener>();
  #receivers = 0;
  #subscription: Subscription | null = null;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** Never rejects: the change is in the log already. */
  async announce(change: AnnouncedChange): Promise<void> {
    this.#pass(change);
    // A Redis that does not answer must not delay the response to a command that has taken effect.
    await Promise.race([this.#publish(change), delay(PUBLISH_WAIT_MS, undefined, { ref: false })]);
  }

  /** Passes the changes that this process announces or receives to the listener, until the returned function is called. */
  listen(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Receives the changes of other processes until the returned function is called. All callers share one subscription. */
  receive(): () => void {
    this.#receivers += 1;
    this.#subscription ??= this.#subscribe();
    return () => {
      this.#receivers -= 1;
      if (this.#receivers > 0) return;
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

  async #publish(change: AnnouncedChange): Promise<void> {
    try {
      await publishToRedis(this.#stores.redis, ANNOUNCEMENTS_CHANNEL, JSON.stringify(change));
    } catch (error) {
      // Processes that have lost Redis, too, notice that and read the log for each decision.
      this.#stores.log.warn(
        { err: error },
        'a change of access or an organization was not announced to other processes',
      );
    }
  }

  #subscribe(): Subscription {
    return subscribeToRedis(this.#stores.redis, ANNOUNCEMENTS_CHANNEL, {
      onMessage: (text) => {
        const change = parsed(text);
        // A newer version of Parley may announce a kind of change unknown here, which may concern anything.
        if (change === undefined) this.#gap();
        else this.#pass(change);
      },
      onListening: () => this.#gap(),
    });
  }

  #pass(change: AnnouncedChange): void {
    for (const listener of this.#listeners) listener.onChange(change);
  }

  #gap(): void {
    for (const listener of this.#listeners) listener.onGap();
  }
}

function parsed(text: string): AnnouncedChange | undefined {
  try {
    return announcedChange.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
