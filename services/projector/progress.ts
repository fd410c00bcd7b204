import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { HeldShare } from './bookmarks.ts';

/** How far the read models have come. */
export interface ProjectionProgress {
  /** `halted`: an event was found that cannot be applied; nothing behind it is, until Parley is mended. */
  readonly phase: 'catching-up' | 'live' | 'halted';
  /** Where shares are followed, that of all projectors together. */
  readonly position: GlobalPosition | null;
  /** What is followed: the log itself; or these shares of it, the others being left to other projectors. */
  readonly source: 'log' | readonly HeldShare[];
  /** Events of this run, whether they were new to the read models or not. */
  readonly eventsSeen: number;
  /** What keeps it from going on: a store that is away, or the event that it halted at. */
  readonly problem: string | null;
}

/** What a projection loop says of itself. Its parts report to it. */
export class ProgressReport {
  readonly #onChange: ((progress: ProjectionProgress) => void) | undefined;
  #now: ProjectionProgress = {
    phase: 'catching-up',
    position: null,
    source: 'log',
    eventsSeen: 0,
    problem: null,
  };

  constructor(onChange: ((progress: ProjectionProgress) => void) | undefined) {
    this.#onChange = onChange;
  }

  get now(): ProjectionProgress {
    return this.#now;
  }

  report(change: Partial<ProjectionProgress>): void {
    this.#now = { ...this.#now, ...change };
    this.#onChange?.(this.#now);
  }

  reached(position: GlobalPosition | null): void {
    if (position !== null) this.report({ position });
  }
}
