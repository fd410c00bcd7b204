/**
 * Read models: folds of the log in Redis, written under a guard of revisions, and read as ready bytes.
 */
export { CollectionReader } from './collection-reader.ts';
export type { NumberRange } from './collection-reader.ts';
export { composeProjections } from './compose-projections.ts';
export type { ComposedEvent, ComposedState } from './compose-projections.ts';
export { decodeDocument, encodeDocument } from './document.ts';
export type { Document } from './document.ts';
export { foldStream } from './fold-stream.ts';
export { EntityReader } from './entity-reader.ts';
export type { DocumentPage, ListFilter } from './entity-reader.ts';
export { BLOCK, blockStart, revisionMember, withHistory } from './history.ts';
export type { WithHistory } from './history.ts';
export { HistoryReader } from './history-reader.ts';
export type { HistoricEntity, HistoryPoint } from './history-reader.ts';
export { idOfMember, listMember, readList } from './entity-list.ts';
export type { ListPage, ListResult } from './entity-list.ts';
export { OldReadModels } from './old-read-models.ts';
export { LogWitness } from './log-witness.ts';
export type { Witness } from './log-witness.ts';
export { parseStreamName, streamName, withFrames } from './projection.ts';
export type { ListEntry, ProjectedEvent, ProjectedRun, ProjectedWrites, Projection } from './projection.ts';
export { PartitionCheckpoints } from './partition-checkpoints.ts';
export type { SavedPartitions } from './partition-checkpoints.ts';
export { earlier, ProjectionState } from './projection-state.ts';
export type { ProjectionStart } from './projection-state.ts';
export { organizationOf, Projector } from './projector.ts';
export type { AnyProjection } from './projector.ts';
export {
  ALL_ORGANIZATIONS,
  entityKeys,
  listKeys,
  projectionKeys,
  READ_MODELS_PREFIX,
  readModelPrefix,
} from './read-model.keys.ts';
export type { EntityKeys, ListKeys, ReadModelName } from './read-model.keys.ts';
export { ReadModel } from './read-model.ts';
export type { ApplyOutcome, CountLookup, EntityWrite, FieldLookup, Lookup, WriteOperation } from './read-model.ts';
