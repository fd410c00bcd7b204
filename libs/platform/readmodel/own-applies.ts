import type { StreamRevision } from '#libs/kernel/event.ts';

/** A moment in the order in which this process sends applies. */
export type ApplyMoment = number & { readonly ofApplies: never };

interface OwnApply {
  readonly last: StreamRevision;
  readonly sent: number;
  /** Whether Redis has confirmed that the read model holds all events up to `last`. Never rejects. */
  readonly isConfirmed: Promise<boolean>;
}

/** Entities whose events no feed has delivered yet; the oldest are forgotten, and looked up when they are delivered. */
const MAX_ENTITIES = 10_000;

/**
 * What this process has applied right after it was appended, so that a consumer of the log in the same process need not
 * apply the same events.
 *
 * A consumer saves a checkpoint once it has applied the events before it, and begins again from the saved checkpoint whenever
 * Redis may have lost anything since it read it. So an apply stands for one of the consumer's own exactly if it was sent
 * after the consumer had read the checkpoint that it began with, and Redis has confirmed it before the next one is saved. An
 * earlier apply may be lost, and the checkpoint that the consumer read may be older because of that.
 */
export class OwnApplies {
  /** By revision key, the newest of each entity; the oldest first. */
  readonly #newest = new Map<string, OwnApply>();
  #sent = 0;
  #isFollowed = false;

  /** To be called by a consumer that has read its checkpoint. Notes applies from the first call on. */
  now(): ApplyMoment {
    this.#isFollowed = true;
    return this.#sent as ApplyMoment;
  }

  /** An apply of events up to `last` that is about to be sent. */
  note(revisionKey: string, last: StreamRevision, isConfirmed: Promise<boolean>): void {
    if (!this.#isFollowed) return;
    // Moves an entity that is applied again to the end of the order.
    this.#newest.delete(revisionKey);
    this.#newest.set(revisionKey, { last, sent: ++this.#sent, isConfirmed });
    if (this.#newest.size > MAX_ENTITIES) this.#newest.delete(String(this.#newest.keys().next().value));
  }

  /** Whether events up to `last` were applied by an apply that was sent after `since`. Waits for its reply. */
  covers(revisionKey: string, last: StreamRevision, since: ApplyMoment): boolean | Promise<boolean> {
    const own = this.#newest.get(revisionKey);
    if (own === undefined || own.last < last) return false;
    // No later event is on its way.
    if (own.last === last) this.#newest.delete(revisionKey);
    return own.sent > since && own.isConfirmed;
  }
}
