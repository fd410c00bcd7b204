import type { EventDescription, PublicEvents } from '#libs/platform/live/index.ts';
import type { AnyProjection } from '#libs/platform/readmodel/index.ts';

/**
 * What a feature declares. Declarations need no store: the projector, the relay and the descriptions of the protocols
 * use them alone. `services/features.ts` lists all modules, and creates the features on the stores of a process.
 */
export interface Module {
  readonly name: string;
  /** A projection for each category of streams. */
  readonly projections?: readonly AnyProjection[];
  /** Events as Kafka publishes them. */
  readonly publicEvents?: PublicEvents;
  /** Where the feature's events name blobs. Blobs that nothing names are removed. */
  readonly blobReferences?: readonly BlobReferences[];
  /** Types of events that sockets and event streams send. */
  readonly liveEvents?: readonly EventDescription[];
}

/**
 * Streams whose events name blobs by their hashes, in any field. An event that names a blob is appended within a day after
 * `put` has returned: a blob without a name is removed a day later.
 */
export interface BlobReferences {
  readonly category: string;
  /** Types of events after which an entity needs none of its blobs any more. They are removed two days later. */
  readonly releasedBy: readonly string[];
}
