import { sequenceOf } from '#libs/kernel/event.ts';
import type { CommandHandlerOptions } from '#libs/platform/commands/index.ts';
import {
  type AnyProjection,
  CollectionReader,
  entityKeys,
  EntityReader,
  HistoryReader,
  ProjectionState,
  Projector,
} from '#libs/platform/readmodel/index.ts';
import { EventStreams } from '#libs/platform/entity/index.ts';
import { LiveNode, type PublishedHeads, type EventDescription, type PublicEvents } from '#libs/platform/live/index.ts';
import { TipCache } from '#libs/platform/streams/index.ts';
import { Announcements } from '#libs/platform/announcements/index.ts';

import type { Platform } from './platform.ts';

/** Writes events into the read models, and reads them. */
export interface ReadModels {
  readonly projector: Projector;
  readonly reader: EntityReader;
  readonly state: ProjectionState;
}

/** The clients of the stores, and the readers and writers of this process on them: modules are created with it. */
export interface Core extends Platform, ReadModels {
  readonly announcements: Announcements;
  readonly collections: CollectionReader;
  readonly history: HistoryReader;
  /** What clients of this process follow; created by the first call, because other roles must not start its clock. */
  readonly live: () => LiveNode;
  readonly eventStreams: EventStreams;
  /** For every command handler of the process. */
  readonly commandOptions: CommandHandlerOptions;
}

/** @param projections one for each category that becomes a read model */
export function openReadModels(
  { store, redis, readModel, log }: Pick<Platform, 'store' | 'redis' | 'readModel' | 'log'>,
  projections: readonly AnyProjection[],
): ReadModels {
  const projector = new Projector(store, readModel, projections, (stream, { firstSequence }) =>
    log.warn(
      { stream, first_sequence: firstSequence },
      'events that a read model needs were deleted in the event store',
    ),
  );
  const state = new ProjectionState(redis, projections);
  return { projector, reader: new EntityReader(redis, readModel, projector), state };
}

/** @param projections one for each category that becomes a read model */
export function openCore(platform: Platform, projections: readonly AnyProjection[]): Core {
  const models = openReadModels(platform, projections);
  observeKeptReads(platform, models.reader);
  observeSkippedEvents(platform, projections);
  const collections = new CollectionReader(platform.redis);
  let node: LiveNode | undefined;
  const live = (): LiveNode => (node ??= new LiveNode(platform, { heads: publishedHeads(platform, projections) }));
  return {
    ...platform,
    ...models,
    announcements: new Announcements(platform),
    collections,
    history: new HistoryReader(platform, models.projector, collections),
    live,
    eventStreams: new EventStreams(live),
    commandOptions: commandOptions(platform),
  };
}

/** @param projections of all streams that are followed */
export function publishedHeads(
  { readModel }: Pick<Platform, 'readModel'>,
  projections: readonly AnyProjection[],
): PublishedHeads {
  const byCategory = new Map(projections.map((projection) => [projection.category, projection]));
  return async (streams) => {
    const keys = streams.map(({ log, organizationId, id }) => {
      const projection = byCategory.get(log.category);
      if (projection === undefined) throw new TypeError(`${log.category} has no read model`);
      return entityKeys(projection, organizationId, id).revision;
    });
    return (await readModel.revisions(keys)).map(sequenceOf);
  };
}

function observeSkippedEvents(
  { metrics, foreignEvents }: Pick<Platform, 'metrics' | 'foreignEvents'>,
  projections: readonly AnyProjection[],
): void {
  const unknown = (): number =>
    projections.flatMap(({ codec }) => [...codec.skipped.values()]).reduce((sum, count) => sum + count, 0);
  metrics.observedCounter(
    'events_skipped_total',
    'Events of other applications, or of types of a newer Parley, that this process has skipped, counted at each read',
    () =>
      [['unknown_type', unknown()] as const, ...foreignEvents].map(([reason, count]) => [{ reason }, count] as const),
    ['reason'],
  );
}

function observeKeptReads({ metrics }: Pick<Platform, 'metrics'>, { kept }: EntityReader): void {
  metrics.observedGauge('kept_reads_bytes', 'Memory of the results of reads that are kept', () => kept.bytes);
  metrics.observedGauge('kept_reads_entries', 'Results of reads kept in memory', () => kept.size);
  metrics.observedCounter(
    'kept_reads_evicted_total',
    'Results of reads that were dropped because of the limit of that memory',
    () => kept.evicted,
  );
}

function commandOptions({ metrics, log }: Pick<Platform, 'metrics' | 'log'>): CommandHandlerOptions {
  const failures = metrics.counter(
    'read_model_write_failures_total',
    'Commands whose events the projector had to apply, because the process that appended them could not',
  );
  const cache = new TipCache();
  metrics.observedGauge('entity_cache_bytes', 'Memory of the entities kept between commands', () => cache.bytes);
  metrics.observedGauge('entity_cache_entities', 'Entities kept in memory between commands', () => cache.size);
  metrics.observedCounter(
    'entity_cache_evicted_total',
    'Entities that were dropped because of the limit of that memory',
    () => cache.evicted,
  );
  return {
    cache,
    onApplyFailure: (error) => {
      failures.add();
      log.warn({ err: error }, 'Redis is away: the read model is behind until the projector has caught up');
    },
  };
}

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
