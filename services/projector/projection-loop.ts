import type { GlobalPosition } from '#libs/kernel/event.ts';
import { CorruptEventError } from '#libs/kernel/faults.ts';
import type { EventFeed, FeedItem, StoredEvent } from '#libs/platform/eventstore/index.ts';
import { backoffMs, pause } from '#libs/platform/lifecycle/index.ts';
import type { ProjectionStart, ProjectionState, Projector } from '#libs/platform/readmodel/index.ts';

/** How far the read models have come. */
export interface ProjectionProgress {
  /** `halted`: an event was found that cannot be applied; nothing behind it is, until Parley is mended. */
  readonly phase: 'catching-up' | 'live' | 'halted';
  readonly position: GlobalPosition | null;
  /** Events of this run, whether they were new to the read models or not. */
  readonly eventsSeen: number;
  /** What keeps it from going on: a store that is away, or the event that it halted at. */
  readonly problem: string | null;
}

export interface ProjectionLoopParts {
  readonly feed: EventFeed;
  readonly state: ProjectionState;
  readonly projector: Projector;
  /** Told of every batch that could not be applied yet, and of the event that halts the loop. */
  readonly onProblem: (error: unknown, progress: ProjectionProgress) => void;
  readonly onProgress?: (progress: ProjectionProgress) => void;
  /** Events applied at a time; the feed's default if absent. */
  readonly maxBatch?: number;
  /** Folds the whole log, even where a projector beside this one has a checkpoint already. */
  readonly fromStart?: boolean;
}

/** Saving after each item would cost a round trip; the checkpoint is only a hint where to start. */
const SAVE_EVERY_MS = 200;
const CHECK_EVERY_MS = 1_000;

/**
 * Feed -> read models: joins the current building of the read models at its checkpoint, applies, saves.
 *
 * A store that is away is waited for with the same batch in hand, so nothing is dropped. Read models that
 * were emptied or set back (a rebuild, a lost Redis, a failover) are noticed, and the loop goes back to
 * their checkpoint. A corrupt event halts it, loudly.
 */
export class ProjectionLoop {
  readonly #parts: ProjectionLoopParts;
  #progress: ProjectionProgress = { phase: 'catching-up', position: null, eventsSeen: 0, problem: null };
  #savedMs = 0;
  #restart: AbortController | null = null;

  constructor(parts: ProjectionLoopParts) {
    this.#parts = parts;
  }

  get progress(): ProjectionProgress {
    return this.#progress;
  }

  /** Goes back to the checkpoint: Redis was away, and may have come back with less than it had. */
  restart(): void {
    this.#restart?.abort();
  }

  /** Runs until `signal` aborts; returns earlier only when a corrupt event has halted it. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.#progress.phase !== 'halted') {
      const restart = new AbortController();
      this.#restart = restart;
      const until = AbortSignal.any([signal, restart.signal]);
      const joined = await this.#untilDone(until, () => this.#parts.state.begin());
      if (joined === undefined) continue;
      const start: ProjectionStart = this.#parts.fromStart === true ? { ...joined, from: 'start' } : joined;
      const watch = setInterval(() => void this.#checkBuild(start, until), CHECK_EVERY_MS);
      try {
        await this.#follow(start, until);
      } finally {
        clearInterval(watch);
      }
    }
  }

  async #follow({ build, from }: ProjectionStart, signal: AbortSignal): Promise<void> {
    const { feed, projector, maxBatch } = this.#parts;
    const { streamPrefixes } = projector;
    this.#report({ phase: 'catching-up', position: from === 'start' ? null : from });
    const items = feed.subscribe({ from, streamPrefixes, signal, ...(maxBatch !== undefined && { maxBatch }) });
    for await (const item of items) {
      const taken = await this.#untilDone(signal, () => this.#take(item, build, signal));
      if (taken === undefined) return;
      if (!taken) return this.restart();
    }
  }

  /** @returns false if the read models are no longer those of `build` */
  async #take(item: FeedItem, build: string, signal: AbortSignal): Promise<boolean> {
    switch (item.kind) {
      case 'events':
        await this.#apply(item.events);
        return this.#save(build, false, signal);
      case 'checkpoint':
        this.#report({ position: item.position });
        return this.#save(build, false, signal);
      case 'caught-up':
        if (!(await this.#save(build, true, signal))) return false;
        if (!signal.aborted) this.#report({ phase: 'live' });
        return true;
    }
  }

  /** What stands before a corrupt event is applied, so that the loop halts at that very event. */
  async #apply(events: readonly StoredEvent[]): Promise<void> {
    try {
      await this.#applyBatch(events);
    } catch (error) {
      if (!(error instanceof CorruptEventError) || events.length === 1) throw error;
      for (const event of events) await this.#applyBatch([event]);
    }
  }

  async #applyBatch(events: readonly StoredEvent[]): Promise<void> {
    const repairLists = this.#progress.phase === 'catching-up';
    await this.#parts.projector.applyStored(events, { repairLists });
    this.#report({
      position: events.at(-1)?.position ?? this.#progress.position,
      eventsSeen: this.#progress.eventsSeen + events.length,
    });
  }

  async #save(build: string, complete: boolean, signal: AbortSignal): Promise<boolean> {
    // Redis came back meanwhile, perhaps without some of what was applied: a checkpoint of ours would skip that.
    if (signal.aborted) return true;
    if (!complete && Date.now() - this.#savedMs < SAVE_EVERY_MS) return true;
    const saved = await this.#parts.state.save(build, this.#progress.position, complete);
    this.#savedMs = Date.now();
    return saved;
  }

  /** Emptied read models are noticed even while no event comes in. */
  async #checkBuild({ build }: ProjectionStart, signal: AbortSignal): Promise<void> {
    try {
      if (!(await this.#parts.state.isCurrent(build))) this.restart();
      // What was applied since the last save is saved now, so that a restart does not repeat it.
      else if (Date.now() - this.#savedMs >= CHECK_EVERY_MS) await this.#save(build, false, signal);
    } catch {
      // Redis is away: the loop itself waits for it, and is restarted when the connection is back.
    }
  }

  /** Repeats `work` while a store is away. @returns undefined when stopped or halted */
  async #untilDone<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | undefined> {
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        const result = await work();
        if (this.#progress.problem !== null) this.#report({ problem: null });
        return result;
      } catch (error) {
        const halted = error instanceof CorruptEventError;
        const problem = error instanceof Error ? error.message : String(error);
        this.#report({ problem, ...(halted && { phase: 'halted' as const }) });
        this.#parts.onProblem(error, this.#progress);
        if (halted) return undefined;
        await pause(backoffMs(failures, { maxMs: 2_000 }), signal);
      }
    }
    return undefined;
  }

  #report(change: Partial<ProjectionProgress>): void {
    this.#progress = { ...this.#progress, ...change };
    this.#parts.onProgress?.(this.#progress);
  }
}
