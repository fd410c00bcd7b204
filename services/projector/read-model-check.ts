import { Fault } from '#libs/kernel/faults.ts';
import type { GlobalPosition } from '#libs/kernel/event.ts';
import { comparePositions, type LogFeed, type StoredEvent } from '#libs/platform/eventstore/index.ts';
import { pause, retry } from '#libs/platform/lifecycle/index.ts';
import { type EntityCheck, entityOfEvent, type EntityRef } from '#libs/platform/readmodel/index.ts';

/** For `/health/ready`. */
interface CheckProgress {
  /** `waiting` for the read models to hold the whole log, or for the next pass. */
  readonly phase: 'waiting' | 'checking';
  /** Of the current or the last pass. */
  readonly entities: number;
  readonly repaired: number;
  /** When the last pass was complete; null before. */
  readonly completed: string | null;
}

interface ReadModelCheckParts {
  readonly feed: LogFeed;
  readonly check: Pick<EntityCheck, 'run'>;
  /** Of the read models that are checked. */
  readonly categories: readonly string[];
  /** Whether the read models hold the whole log: otherwise all that they lack would be folded here. */
  readonly isLive: () => boolean;
  readonly onRepaired: (entity: EntityRef) => void;
  readonly onFailure: (error: unknown) => void;
  /** Rest after work, as a multiple of its time. */
  readonly rest?: number;
}

const AT_ONCE = 4;
/** The check leaves three quarters of a core, and of the stores' time, to others. */
const REST = 3;
const WAIT_MS = 100;
export const CHECK_EVERY_MS = 24 * 3_600_000;

/**
 * Walks through the log up to its present end, and compares each entity that it creates with its read model. Runs after a
 * start, whenever Redis came back, and once a day, at a low priority: a few entities at a time, each in pages of events with
 * rests between them.
 */
export class ReadModelCheck {
  readonly #parts: ReadModelCheckParts;
  #progress: CheckProgress = { phase: 'waiting', entities: 0, repaired: 0, completed: null };
  #restart = new AbortController();

  constructor(parts: ReadModelCheckParts) {
    this.#parts = parts;
  }

  get progress(): CheckProgress {
    return this.#progress;
  }

  /** Begins a new pass: Redis may have lost or changed what was compared already. */
  again(): void {
    this.#restart.abort();
  }

  /** Runs until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#restart = new AbortController();
      const either = AbortSignal.any([signal, this.#restart.signal]);
      await this.#pass(either);
      this.#report({ phase: 'waiting' });
      if (either.aborted) continue;
      this.#report({ completed: new Date().toISOString() });
      await pause(CHECK_EVERY_MS, either);
    }
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { feed, categories, isLive } = this.#parts;
    while (!isLive() && !signal.aborted) await pause(WAIT_MS, signal);
    if (signal.aborted) return;
    this.#report({ phase: 'checking', entities: 0, repaired: 0 });
    // Later entities are left to the next pass: one that followed a busy log would compare what was written a moment ago.
    const head = await this.#head(signal);
    if (head === null) return;
    const done = new AbortController();
    const items = feed.subscribe({
      from: 'start',
      streamPrefixes: categories.map((category) => `${category}-`),
      signal: AbortSignal.any([signal, done.signal]),
    });
    for await (const item of items) {
      const events = item.kind === 'events' ? item.events : [];
      const due = events.filter(({ position }) => position === null || comparePositions(position, head) <= 0);
      await this.#checkCreated(due, signal);
      if (item.kind === 'caught-up' || due.length < events.length) done.abort();
    }
  }

  /** Null for an empty log, or if `signal` has aborted. */
  async #head(signal: AbortSignal): Promise<GlobalPosition | null> {
    try {
      return await retry(() => this.#parts.feed.head(), { signal });
    } catch {
      return null;
    }
  }

  async #checkCreated(events: readonly StoredEvent[], signal: AbortSignal): Promise<void> {
    const created = events.filter(({ revision }) => revision === 0).map(entityOfEvent);
    const entities = created.filter((entity) => entity !== null);
    for (let from = 0; from < entities.length && !signal.aborted; from += AT_ONCE) {
      while (!this.#parts.isLive() && !signal.aborted) await pause(WAIT_MS, signal);
      await Promise.all(entities.slice(from, from + AT_ONCE).map((entity) => this.#checkOne(entity, signal)));
    }
  }

  /** An entity that cannot be compared costs the others nothing. */
  async #checkOne(entity: EntityRef, signal: AbortSignal): Promise<void> {
    const { check, onRepaired, onFailure } = this.#parts;
    let workedFrom = performance.now();
    const rest = async (): Promise<void> => {
      await pause((performance.now() - workedFrom) * (this.#parts.rest ?? REST), signal);
      signal.throwIfAborted();
      workedFrom = performance.now();
    };
    try {
      const outcome = await retry(() => check.run(entity, rest), {
        signal,
        onFailure(error) {
          if (!(error instanceof Fault)) throw error;
        },
      });
      if (outcome === 'repaired') onRepaired(entity);
      const { entities, repaired } = this.#progress;
      this.#report({ entities: entities + 1, repaired: repaired + (outcome === 'repaired' ? 1 : 0) });
    } catch (error) {
      if (!signal.aborted) onFailure(error);
    }
  }

  #report(change: Partial<CheckProgress>): void {
    this.#progress = { ...this.#progress, ...change };
  }
}
