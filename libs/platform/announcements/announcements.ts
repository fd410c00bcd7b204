import { setTimeout as delay } from 'node:timers/promises';

import { z } from 'zod';

import type { EntityId } from '#libs/kernel/ids.ts';
import { publishToRedis, type RedisClient, subscribeToRedis, type Subscription } from '#libs/platform/redis/index.ts';

import { KEY_CHANGES_CHANNEL } from './announcements.keys.ts';

const keyChange = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('changed'), keyId: z.string() }),
  z.object({ kind: z.literal('revoked'), keyId: z.string() }),
  z.object({ kind: z.literal('user-deactivated'), organizationId: z.string(), userId: z.string() }),
  /** The keys of a token issuer, or whether it may issue at all. */
  z.object({ kind: z.literal('issuer-changed'), issuerId: z.string() }),
  /** A participant was removed from a channel. */
  z.object({ kind: z.literal('participant-removed'), organizationId: z.string(), channelId: z.string() }),
]);
/** Not of a key. Versions that do not know it take it for a change that may concern any key. */
const organizationChanged = z.object({ kind: z.literal('organization-changed') });

/** How long a command waits for the publication of its change. */
const PUBLISH_WAIT_MS = 500;

interface Parts {
  readonly redis: RedisClient;
  readonly log: { warn(fields: object, message: string): void };
}

export type AnnouncedChange = z.infer<typeof keyChange>;

export interface ChangeListener {
  onChange(change: AnnouncedChange): void;
  /** Changes by other processes may have been missed; those after this call are received. */
  onGap(): void;
}

/**
 * Announces changes of access and of organizations: to this process immediately, even without Redis, and to others by Redis
 * pub/sub. An announcement only makes a process read the log, or the read model, earlier; these decide.
 */
export class Announcements {
  readonly #platform: Parts;
  /** An entry for each call of `subscribe`: two roles of a process may pass the same subscriber. */
  readonly #subscribers = new Set<{ readonly subscriber: ChangeListener }>();
  readonly #ofOrganizations = new Set<() => void>();
  #subscription: Subscription | null = null;

  constructor(platform: Parts) {
    this.#platform = platform;
  }

  /** Never rejects: the change is in the log already. */
  async announce(change: AnnouncedChange): Promise<void> {
    this.#pass(change);
    await this.#publishSoon(change);
  }

  announceDeactivation(organizationId: EntityId, userId: EntityId): Promise<void> {
    return this.announce({ kind: 'user-deactivated', organizationId, userId });
  }

  /** As {@link announce}, of an organization. */
  async announceOrganization(): Promise<void> {
    this.#passOrganizations();
    await this.#publishSoon({ kind: 'organization-changed' });
  }

  /** Calls `onChange` when an organization has changed, or may have, as long as there are subscribers of keys. */
  onOrganizations(onChange: () => void): void {
    this.#ofOrganizations.add(onChange);
  }

  async #publishSoon(change: object): Promise<void> {
    // A Redis that does not answer must not delay the response to a command that has taken effect.
    await Promise.race([this.#publish(change), delay(PUBLISH_WAIT_MS, undefined, { ref: false })]);
  }

  /** All subscribers of the process share one subscription to Redis. @returns unsubscribes */
  subscribe(subscriber: ChangeListener): () => void {
    const entry = { subscriber };
    this.#subscribers.add(entry);
    this.#subscription ??= this.#subscribe();
    return () => {
      if (!this.#subscribers.delete(entry) || this.#subscribers.size > 0) return;
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

  async #publish(change: object): Promise<void> {
    try {
      await publishToRedis(this.#platform.redis, KEY_CHANGES_CHANNEL, JSON.stringify(change));
    } catch (error) {
      // Processes that have lost Redis, too, notice that and read the log for each decision.
      this.#platform.log.warn(
        { err: error },
        'a change of an API key or an organization was not announced to other processes',
      );
    }
  }

  #subscribe(): Subscription {
    return subscribeToRedis(this.#platform.redis, KEY_CHANGES_CHANNEL, {
      onMessage: (text) => {
        const message = parseJson(text);
        const change = keyChange.safeParse(message);
        if (change.success) this.#pass(change.data);
        else if (organizationChanged.safeParse(message).success) this.#passOrganizations();
        // A newer version of Parley may announce a kind of change unknown here, which may concern any key.
        else this.#gap();
      },
      onListening: () => this.#gap(),
    });
  }

  #pass(change: AnnouncedChange): void {
    for (const { subscriber } of this.#subscribers) subscriber.onChange(change);
  }

  #passOrganizations(): void {
    for (const onChange of this.#ofOrganizations) onChange();
  }

  #gap(): void {
    this.#passOrganizations();
    for (const { subscriber } of this.#subscribers) subscriber.onGap();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
