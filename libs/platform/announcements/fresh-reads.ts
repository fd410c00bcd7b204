import { LRUCache } from 'lru-cache';

import type { EntityId } from '#libs/kernel/ids.ts';

import type { AnnouncedChange, Announcements } from './announcements.ts';

/** Maximum age of the read behind a decision, unless announcements prove that the entity has not changed since. */
export const MAX_STALENESS_MS = 800;
/** Even with announcements, an entity is read again after this time: the process that changed it may have lost Redis. */
const REFRESH_AFTER_MS = 15_000;
/** Maximum age of a read while the log is unavailable. */
const MAX_AGE_MS = 35_000;

/** The result of one read of the log. `readAtMs`: its beginning, by the clock of the reads. */
export interface Reading<Value> {
  readonly value: Value;
  readonly readAtMs: number;
}

interface PendingRead<Value> {
  readonly reading: Promise<Reading<Value> | null>;
  /** A change of the entity was announced after the read began. */
  outdated: boolean;
}

export interface FreshReadsOptions<Value> {
  /** Reads the entity from the log; null for one that grants nothing. Throws `store_unavailable` faults. */
  readonly read: (id: EntityId) => Promise<Value | null>;
  readonly announcements: Pick<Announcements, 'areReceivedSince' | 'listen'>;
  /** Invalidates the entities that a change concerns. */
  readonly onChange: (change: AnnouncedChange, reads: FreshReads<Value>) => void;
  /** Called when announcements may have been missed, after which every entity is read again. */
  readonly onGap?: () => void;
  /** Entities, or their bytes if `bytesOf` measures them. */
  readonly max: number;
  readonly bytesOf?: (value: Value) => number;
  /** Monotonic, in milliseconds. Default: `performance.now()`. */
  readonly clock?: (() => number) | undefined;
  /** Called with the result of each read that counts. */
  readonly onRead?: (id: EntityId, value: Value | null) => void;
}

/**
 * What decisions about access are based on: entities read from the log, kept as long as announcements prove that they have
 * not changed. Using a read older than 15 s starts another one in the background.
 *
 * Guarantees: no decision is based on a read older than 35 s, or on one that began before an announced change. Only what
 * grants something is kept: null is read again for each decision. Memory is bounded.
 */
export class FreshReads<Value> {
  readonly #options: FreshReadsOptions<Value>;
  readonly #clock: () => number;
  readonly #known: LRUCache<EntityId, Reading<Value>>;
  readonly #pending = new Map<EntityId, PendingRead<Value>>();
  /** Reads that began before this time may lack changes whose announcements were missed. */
  #gapAtMs = -Infinity;

  constructor(options: FreshReadsOptions<Value>) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
    // As in `recentlyUsed`, a number of entries is not allocated at once.
    const { max, bytesOf = () => 1 } = options;
    this.#known = new LRUCache({ maxSize: max, sizeCalculation: ({ value }) => bytesOf(value) });
    options.announcements.listen({
      onChange: (change) => options.onChange(change, this),
      onGap: () => {
        this.outdateAll();
        options.onGap?.();
      },
    });
  }

  /** A read that is recent enough to decide on; undefined if there is none. */
  current(id: EntityId): Reading<Value> | undefined {
    const reading = this.#known.get(id);
    if (reading === undefined || reading.readAtMs <= this.#gapAtMs) return undefined;
    const age = this.#clock() - reading.readAtMs;
    if (age >= MAX_STALENESS_MS) {
      if (age >= MAX_AGE_MS || !this.#options.announcements.areReceivedSince(reading.readAtMs, MAX_STALENESS_MS)) {
        return undefined;
      }
      // A failure is reported once this read is too old and a caller awaits the next one.
      if (age >= REFRESH_AFTER_MS) this.read(id).catch(() => undefined);
    }
    return reading;
  }

  /** Reads once for all callers that wait for the same entity. @throws `Fault` `store_unavailable` */
  async read(id: EntityId): Promise<Reading<Value> | null> {
    for (;;) {
      const pending = this.#pending.get(id) ?? this.#beginRead(id);
      const reading = await pending.reading;
      if (!pending.outdated) return reading;
    }
  }

  /** Whether a read has begun: `read` gives its result. */
  isReading(id: EntityId): boolean {
    return this.#pending.has(id);
  }

  /** The last read, however old. */
  known(id: EntityId): Reading<Value> | undefined {
    return this.#known.get(id);
  }

  age({ readAtMs }: Reading<Value>): number {
    return this.#clock() - readAtMs;
  }

  /** The entity has changed: it is read again before the next decision. */
  invalidate(id: EntityId): void {
    const pending = this.#pending.get(id);
    if (pending !== undefined) pending.outdated = true;
    this.#known.delete(id);
  }

  /** As {@link invalidate}; `known` still answers. */
  outdate(id: EntityId): void {
    const reading = this.#known.get(id);
    this.invalidate(id);
    if (reading !== undefined) this.#known.set(id, { ...reading, readAtMs: -Infinity });
  }

  /** As {@link invalidate}, for the entities that `concerns` names, and for all that are being read. */
  invalidateWhere(concerns: (value: Value) => boolean): void {
    for (const pending of this.#pending.values()) pending.outdated = true;
    for (const [id, { value }] of this.#known.entries()) if (concerns(value)) this.#known.delete(id);
  }

  /** Every entity is read again before the next decision; `known` still answers. */
  outdateAll(): void {
    this.#gapAtMs = this.#clock();
    for (const pending of this.#pending.values()) pending.outdated = true;
  }

  #beginRead(id: EntityId): PendingRead<Value> {
    const readAtMs = this.#clock();
    const pending: PendingRead<Value> = {
      outdated: false,
      reading: this.#options
        .read(id)
        .then((value) => {
          const reading = value === null ? null : { value, readAtMs };
          if (!pending.outdated) this.#remember(id, reading);
          return reading;
        })
        .finally(() => this.#pending.delete(id)),
    };
    this.#pending.set(id, pending);
    return pending;
  }

  #remember(id: EntityId, reading: Reading<Value> | null): void {
    if (reading === null) this.#known.delete(id);
    else this.#known.set(id, reading);
    this.#options.onRead?.(id, reading === null ? null : reading.value);
  }
}
