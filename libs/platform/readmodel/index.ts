/**
 * Read models: folds of the log in Redis, written under a guard of revisions, and read as ready bytes.
 */
export { CollectionReader } from './collection-reader.ts';
export { EntityCheck } from './entity-check.ts';
export { encodeDocument } from './document.ts';
export type { Document } from './document.ts';
export { EntityReader } from './entity-reader.ts';
export { BLOCK, blockStart, revisionMember, type WithHistory, withHistory } from './history.ts';
export { HistoryReader } from './history-reader.ts';
export { listMember } from './entity-list.ts';
export type { DocumentPage, ListPage, StatePage } from './entity-list.ts';
export { OldReadModels } from './old-read-models.ts';
export type { KeptRead, WholeRead } from './kept-reads.ts';
export { LogWitness } from './log-witness.ts';
export type { HistoryPoint } from '#libs/platform/streams/index.ts';
export type { ApplyMoment } from './own-applies.ts';
export { withFrames } from './projection.ts';
export type { ProjectedEvent, ProjectedWrites, Projection } from './projection.ts';
export { PartitionCheckpoints } from './partition-checkpoints.ts';
export type { SavedPartitions } from './partition-checkpoints.ts';
export { foldedBefore, StreamFrames } from './stream-frames.ts';
export { earlier, ProjectionState } from './projection-state.ts';
export type { ProjectionStart } from './projection-state.ts';
export { Projector, writeOfAppended } from './projector.ts';
export { entityOfEvent } from './stream-owner.ts';
export type { AppendedRun } from './projector.ts';
export type { AnyProjection } from './stored-run.ts';
export {
  ALL_ORGANIZATIONS,
  entityKeys,
  listKeys,
  projectionKeys,
  READ_MODELS_PREFIX,
  readModelPrefix,
} from './read-model.keys.ts';
export type { EntityKeys, EntityRef, ReadModelName } from './read-model.keys.ts';
export { ReadModel } from './read-model.ts';
export type { CountLookup, EntityWrite, FieldLookup, Lookup, WriteOperation } from './read-model.ts';
export type { StoredState } from './snapshot.ts';
