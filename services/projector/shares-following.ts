import type { SharedFeed } from '#libs/platform/eventstore/index.ts';
import type {
  PartitionCheckpoints,
  ProjectionStart,
  Projector,
  SavedPartitions,
} from '#libs/platform/readmodel/index.ts';
import { SharesBookmark } from './bookmarks.ts';
import type { Follower } from './follower.ts';
import type { ProgressReport } from './progress.ts';

/** A feed that projectors divide among them, and where they note how far each has come. */
export interface SharedSource {
  readonly feed: SharedFeed;
  readonly shares: PartitionCheckpoints;
}

/** Where to go on. */
export interface Beginning {
  readonly start: ProjectionStart;
  /** Null while the read models are kept up from the log alone. */
  readonly saved: SavedPartitions | null;
}

export interface SharesFollowingParts extends SharedSource {
  readonly projector: Projector;
  readonly maxBatch: number | undefined;
  readonly follower: Follower;
  readonly progress: ProgressReport;
  /** Begins again, from what is saved. */
  readonly restart: () => void;
  /** Told why the shares could not be followed any further. */
  readonly onLost: ((reason: string) => void) | undefined;
}

/** Follows those shares of the log that fall to this projector. */
export class SharesFollowing {
  readonly #parts: SharesFollowingParts;
  /** The handover whose shares could not be followed any further. */
  #lost: string | null = null;

  constructor(parts: SharesFollowingParts) {
    this.#parts = parts;
  }

  /** False of a handover whose shares were lost already. */
  canFollow({ handover }: SavedPartitions): boolean {
    return handover !== this.#lost;
  }

  async follow(start: ProjectionStart, { handover }: SavedPartitions, signal: AbortSignal): Promise<void> {
    const { feed, follower, maxBatch, onLost, progress, projector, restart, shares } = this.#parts;
    const { from } = start;
    progress.report({ phase: 'catching-up', position: from === 'start' ? null : from, source: [] });
    const bookmark = new SharesBookmark(shares, start, handover, ({ position, held }) =>
      progress.report({ source: held, ...(position !== null && { position }) }),
    );
    const { streamPrefixes } = projector;
    const items = feed.subscribe({
      streamPrefixes,
      signal,
      ...(maxBatch !== undefined && { maxBatch }),
      marks: async () => {
        const now = await shares.read(start);
        if (now?.handover === handover) return now.marks;
        restart();
        return [];
      },
    });
    const lost = await follower.follow({ items, bookmark }, signal);
    if (lost === null) return;
    this.#lost = handover;
    onLost?.(lost);
  }
}
