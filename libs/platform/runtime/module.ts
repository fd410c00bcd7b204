import type { HttpApp, LiveCommandType } from '#libs/platform/http/index.ts';
import type { EventDescription, LiveValues, PublicEvents } from '#libs/platform/live/index.ts';
import type { AnyReactor } from '#libs/platform/reactors/index.ts';
import type { AnyProjection } from '#libs/platform/readmodel/index.ts';

import type { Core } from './core.ts';

/**
 * What a feature contributes to the processes of Parley. The declarations need no store: the projector, the relay and
 * the descriptions of the protocols use them alone. `services/features.ts` lists all modules.
 */
export interface Module {
  readonly name: string;
  /** One for each category of streams that only this feature writes to. */
  readonly projections?: readonly AnyProjection[];
  /** The feature's events in a category that several features write to: they share its streams and their revisions. */
  readonly partOfChannel?: AnyProjection;
  /** Events as Kafka publishes them. */
  readonly publicEvents?: PublicEvents;
  /** Where the feature's events name blobs. Blobs that nothing names are removed. */
  readonly blobReferences?: readonly BlobReferences[];
  /** Types of events that sockets and event streams send. */
  readonly liveEvents?: readonly EventDescription[];
  /**
   * Called once per process. The result also holds the commands and queries that other features and the command line
   * use.
   *
   * @param deps what the module needs of other features
   */
  create(core: Core, deps: never): ModuleInstance;
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

/** A module on the stores of one process. */
export interface ModuleInstance {
  /** Declares its routes of the HTTP API. */
  routes?(app: HttpApp): void;
  /** Commands that sockets may send. */
  readonly liveCommands?: readonly LiveCommandType[];
  /** Current values that are not in the log, such as drafts. */
  readonly liveValues?: readonly LiveValues[];
  /** Effects that follow from events; run by the role `worker`. */
  readonly reactors?: readonly AnyReactor[];
}
