/** Streams of one entity or process each: folded, appended to at an exact revision, and kept in memory between commands. */
export {
  emptyTip,
  foldStream,
  foldTail,
  foldUntil,
  type HistoryPoint,
  latestTime,
  parseStreamName,
  streamName,
  type StreamType,
  type Tip,
  appendExactly,
  eventsToAppend,
} from './fold-stream.ts';
export { type Growth, TipCache, ByteCache } from './tip-cache.ts';
