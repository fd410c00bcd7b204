import type { GlobalPosition } from '#libs/kernel/event.ts';
import type { ShareMark } from '#libs/platform/eventstore/index.ts';
import type { PartitionCheckpoints, ProjectionStart, ProjectionState } from '#libs/platform/readmodel/index.ts';

type ReachedMark = ShareMark & { readonly behind?: number };

/** How far one build of the read models was brought by one projector, kept beside the build. */
export interface Bookmark {
  /** @param complete the whole log is in the read models */
  save(complete: boolean): Promise<boolean>;
  /** Whether the read models are still those of the build. */
  isCurrent(): Promise<boolean>;
  /** Shares are gone on with from these marks. */
  begin(marks: readonly ShareMark[]): void;
  /** Shares were brought so far. */
  note(marks: readonly ReachedMark[]): void;
}

/** Of the log itself: one position. */
export class LogBookmark implements Bookmark {
  readonly #state: ProjectionState;
  readonly #start: ProjectionStart;
  readonly #position: () => GlobalPosition | null;

  constructor(state: ProjectionState, start: ProjectionStart, position: () => GlobalPosition | null) {
    this.#state = state;
    this.#start = start;
    this.#position = position;
  }

  save(complete: boolean): Promise<boolean> {
    return this.#state.save(this.#start, this.#position(), complete);
  }

  isCurrent(): Promise<boolean> {
    return this.#state.isCurrent(this.#start);
  }

  begin(): void {}

  note(): void {}
}

/** A share that this projector follows. */
export interface HeldShare {
  readonly share: string;
  /** Everything of the share up to it is applied. */
  readonly position: GlobalPosition;
  /** Messages that were known to follow when it was told; null before the first. */
  readonly behind: number | null;
}

export interface SharesProgress {
  /** Of all projectors; null while nothing was saved. */
  readonly position: GlobalPosition | null;
  readonly held: readonly HeldShare[];
}

/** Of shares: one mark for each. */
export class SharesBookmark implements Bookmark {
  readonly #shares: PartitionCheckpoints;
  readonly #start: ProjectionStart;
  readonly #handover: string;
  readonly #onProgress: (progress: SharesProgress) => void;
  readonly #held = new Map<string, HeldShare>();
  /** What is known to be saved: less than that must not be there. */
  readonly #saved = new Map<string, ShareMark>();
  readonly #unsaved = new Map<string, ShareMark>();

  constructor(
    shares: PartitionCheckpoints,
    start: ProjectionStart,
    handover: string,
    onProgress: (progress: SharesProgress) => void,
  ) {
    this.#shares = shares;
    this.#start = start;
    this.#handover = handover;
    this.#onProgress = onProgress;
  }

  save(): Promise<boolean> {
    return this.#save([...this.#unsaved.values()]);
  }

  /** Another handover is noticed as well, as its marks are not these; and a Redis that has less than was saved. */
  isCurrent(): Promise<boolean> {
    return this.#save([...new Map([...this.#saved, ...this.#unsaved]).values()]);
  }

  begin(marks: readonly ShareMark[]): void {
    this.#saved.clear();
    this.#unsaved.clear();
    this.#held.clear();
    for (const mark of marks) {
      this.#saved.set(mark.share, mark);
      this.#held.set(mark.share, { share: mark.share, position: mark.position, behind: null });
    }
    this.#onProgress({ position: null, held: [...this.#held.values()] });
  }

  note(marks: readonly ReachedMark[]): void {
    for (const { behind = null, ...mark } of marks) {
      this.#unsaved.set(mark.share, mark);
      this.#held.set(mark.share, { share: mark.share, position: mark.position, behind });
    }
  }

  async #save(marks: readonly ShareMark[]): Promise<boolean> {
    const known = new Map([...this.#saved].map(([share, { mark }]) => [share, mark]));
    const position = await this.#shares.save(this.#start, this.#handover, { marks, known });
    if (position === null) return false;
    for (const mark of marks) {
      if (this.#unsaved.get(mark.share) === mark) this.#unsaved.delete(mark.share);
      if (this.#saved.has(mark.share)) this.#saved.set(mark.share, mark);
    }
    this.#onProgress({ position, held: [...this.#held.values()] });
    return true;
  }
}
