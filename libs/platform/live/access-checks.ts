import { setTimeout as delay } from 'node:timers/promises';

import { earliest, type LiveAccess } from './access.ts';
import { CLOSE } from './close-codes.ts';
import { TICK_MS, type Subscriber } from './subscriber.ts';

const CHUNK = 500;
/** Requests within this time are checked together: many subscribers have the same key, which is read once for all. */
const GATHER_MS = 50;
/** A subscriber whose key was verified longer ago than this is closed. In ticks, of a second. */
const MAX_UNVERIFIED_TICKS = 55;
/** Maximum age of the read that admitted a key: a new subscriber counts as verified this long ago until its check. */
const ADMITTED_AGE_TICKS = 35;

interface AccessChecksParts {
  readonly access: () => LiveAccess;
  /** Ticks since the node started. */
  readonly now: () => number;
  readonly onFailure: (error: unknown) => void;
}

/**
 * Closes subscribers whose key has ended, whose user was removed from the channel, or whose key could not be verified
 * for too long. In the last two cases the client may reconnect with a new ticket.
 */
export class AccessChecks {
  readonly #parts: AccessChecksParts;
  readonly #keys: BatchedChecks;
  readonly #participants: BatchedChecks;

  constructor(parts: AccessChecksParts) {
    this.#parts = parts;
    const { onFailure } = parts;
    this.#keys = new BatchedChecks((subscribers) => this.#checkKeys(subscribers), onFailure);
    this.#participants = new BatchedChecks((subscribers) => this.#checkParticipants(subscribers), onFailure);
  }

  /** Must be called before the first check of a subscriber. */
  start(subscriber: Subscriber): void {
    subscriber.verifiedTick = this.#parts.now() - ADMITTED_AGE_TICKS;
  }

  /** Checks these soon, together with others. */
  request(subscribers: Iterable<Subscriber>): void {
    const all = [...subscribers];
    this.#keys.request(all);
    this.#participants.request(
      all.filter(({ grant }) => grant.channelId !== null && grant.principalType === 'user' && !grant.isMember),
    );
  }

  /** Closes the subscriber if its time has run out, whether checks get answers or not. */
  expire(subscriber: Subscriber, nowMs: number): void {
    const { expiresAtMs } = subscriber.grant;
    if (expiresAtMs !== null && expiresAtMs <= nowMs) subscriber.close(CLOSE.accessLost, 'The key has expired');
    else if (subscriber.verifiedTick < this.#parts.now() - MAX_UNVERIFIED_TICKS)
      subscriber.close(CLOSE.unverified, 'The key could not be verified');
  }

  async #checkKeys(subscribers: readonly Subscriber[]): Promise<void> {
    const startTick = this.#parts.now();
    const byKey = Map.groupBy(subscribers, ({ grant }) =>
      grant.isMember ? `${grant.keyId} ${grant.channelId}` : grant.keyId,
    );
    await Promise.all(
      byKey.values().map(async (own) => {
        const [first] = own;
        const key = first === undefined ? 'unknown' : await this.#parts.access().check(first.grant);
        if (key === 'unknown') return;
        for (const subscriber of own) {
          if (key === 'lost') {
            subscriber.close(CLOSE.accessLost, subscriber.reasons.lost);
            continue;
          }
          const { ageMs } = key;
          const expiresAtMs = earliest(key.expiresAtMs, subscriber.grant.expiresAtMs);
          subscriber.verifiedTick = Math.max(subscriber.verifiedTick, startTick - Math.ceil(ageMs / TICK_MS));
          if (expiresAtMs !== subscriber.grant.expiresAtMs) subscriber.grant = { ...subscriber.grant, expiresAtMs };
        }
      }),
    );
  }

  async #checkParticipants(subscribers: readonly Subscriber[]): Promise<void> {
    const byChannel = Map.groupBy(subscribers, ({ grant }) => `${grant.organizationId} ${grant.channelId}`);
    await Promise.all(
      byChannel.values().map(async (own) => {
        const { organizationId, channelId = null } = own[0]?.grant ?? {};
        const users = channelId && organizationId && (await this.#parts.access().usersOf(organizationId, channelId));
        if (!users) return;
        for (const subscriber of own) {
          const takesPart = users.has(subscriber.grant.principalId);
          if (takesPart === subscriber.grant.takesPart) continue;
          if (takesPart) subscriber.grant = { ...subscriber.grant, takesPart };
          else subscriber.close(CLOSE.removed, 'The user was removed from the channel');
        }
      }),
    );
  }
}

/** Checks of one kind: requests are gathered for a moment and checked in chunks, one after another. */
class BatchedChecks {
  readonly #check: (subscribers: readonly Subscriber[]) => Promise<void>;
  readonly #onFailure: (error: unknown) => void;
  #waiting = new Set<Subscriber>();
  #isRunning = false;

  constructor(check: (subscribers: readonly Subscriber[]) => Promise<void>, onFailure: (error: unknown) => void) {
    this.#check = check;
    this.#onFailure = onFailure;
  }

  request(subscribers: readonly Subscriber[]): void {
    for (const subscriber of subscribers) this.#waiting.add(subscriber);
    if (!this.#isRunning && this.#waiting.size > 0) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.size > 0) {
      await delay(GATHER_MS, undefined, { ref: false });
      const open = [...this.#waiting].filter(({ isOpen }) => isOpen);
      this.#waiting = new Set();
      for (let from = 0; from < open.length; from += CHUNK) {
        await this.#check(open.slice(from, from + CHUNK)).catch(this.#onFailure);
      }
    }
    this.#isRunning = false;
  }
}
