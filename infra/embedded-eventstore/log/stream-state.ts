// The state of a stream that the log keeps beside its events, and which of its events can be read.

/** Limits for reads, from a stream's metadata (`$$name`). */
export type Truncation = {
  /** Seconds. */
  maxAge: number | undefined;
  maxCount: number | undefined;
  /** First revision that may be read; Infinity for a soft delete. */
  truncateBefore: number | undefined;
};

export type StreamState = {
  /** Number of the stream in the index; never changes. */
  readonly number: number;
  /** -1 while only metadata was written. */
  lastRevision: number;
  tombstoned: boolean;
  truncation: Truncation;
};

const NO_TRUNCATION: Truncation = { maxAge: undefined, maxCount: undefined, truncateBefore: undefined };
/** Only the newest event of a metadata stream can be read. */
const METASTREAM_TRUNCATION: Truncation = { ...NO_TRUNCATION, maxCount: 1 };

/** `$tb` of a soft-deleted stream: 2^63 - 1. */
export const SOFT_DELETED = '9223372036854775807';

export const METADATA_TYPE = '$metadata';
export const TOMBSTONE_TYPE = '$streamDeleted';

export const isMetastream = (stream: string): boolean => stream.startsWith('$$');
export const metastreamOf = (stream: string): string => `$$${stream}`;
export const originalOf = (metastream: string): string => metastream.slice(2);

export function newStream(number: number): StreamState {
  return { number, lastRevision: -1, tombstoned: false, truncation: NO_TRUNCATION };
}

export const isSoftDeleted = (state: StreamState): boolean => state.truncation.truncateBefore === Infinity;

/** Parses the data of a `$metadata` event. Invalid values count as absent, as on the real server. */
export function parseTruncation(data: Uint8Array): Truncation {
  const json = parseObject(data);
  const truncateBefore = naturalNumber(json['$tb']);
  return {
    maxAge: naturalNumber(json['$maxAge']) || undefined,
    maxCount: naturalNumber(json['$maxCount']) || undefined,
    truncateBefore:
      truncateBefore !== undefined && truncateBefore > Number.MAX_SAFE_INTEGER ? Infinity : truncateBefore,
  };
}

/** Metadata that hides the events before `revision` and keeps the rest of `previous`. */
export function metadataFrom(previous: Uint8Array, revision: number): Uint8Array {
  return Buffer.from(JSON.stringify({ ...parseObject(previous), $tb: revision }));
}

export function softDeletedMetadata(): Uint8Array {
  return Buffer.from(`{"$tb":${SOFT_DELETED}}`);
}

/** First revision that may be read, by `$tb` and `$maxCount` without `$maxAge`; above `lastRevision` when none may. */
export function firstReadable(stream: string, state: StreamState): number {
  const { maxCount, truncateBefore } = isMetastream(stream) ? METASTREAM_TRUNCATION : state.truncation;
  const byCount = maxCount === undefined ? 0 : state.lastRevision - maxCount + 1;
  return Math.max(0, byCount, truncateBefore ?? 0);
}

/** Events created before this (epoch ms) are too old; undefined when there is no age limit. */
export function oldestReadable(stream: string, state: StreamState, now: number): number | undefined {
  const { maxAge } = isMetastream(stream) ? METASTREAM_TRUNCATION : state.truncation;
  return maxAge === undefined ? undefined : now - maxAge * 1000;
}

function parseObject(data: Uint8Array): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(Buffer.from(data).toString('utf8'));
    return typeof json === 'object' && json !== null && !Array.isArray(json) ? { ...json } : {};
  } catch {
    return {};
  }
}

function naturalNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
}
