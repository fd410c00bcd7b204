// Whether an append may be written, as the real server decides it: the
// expected revision and, for repeats, the ids of the events. Pure.
import type { ExpectedRevision } from './event-log.ts';
import { isSoftDeleted } from './stream-state.ts';
import type { StreamState } from './stream-state.ts';

export type WrittenEvent = { revision: number; position: number };

/** What the decision needs to know of events written before. */
export interface WrittenEvents {
  /** The event at a revision of the stream, however long ago it was written. */
  at(revision: number): { id: string; position: number } | undefined;
  /** An event of the stream by id; only recent ones are known. */
  recent(id: string): WrittenEvent | undefined;
  /** Whether the stream has metadata; that makes it exist even without events. */
  hasMetadata: boolean;
}

/**
 * - `write`: goes on after the last revision; `revive` when the stream was soft-deleted.
 * - `repeated`: these very events are there already.
 */
export type Decision =
  | { kind: 'write'; revive: boolean }
  | { kind: 'repeated'; event: WrittenEvent }
  | { kind: 'wrong-revision' }
  | { kind: 'stream-deleted' };

const WRONG: Decision = { kind: 'wrong-revision' };

/** Decides an append of events with these ids to a stream (`undefined`: never heard of). */
export function decideAppend(
  stream: StreamState | undefined,
  expected: ExpectedRevision,
  ids: readonly string[],
  written: WrittenEvents,
): Decision {
  if (stream?.tombstoned) return { kind: 'stream-deleted' };
  const softDeleted = stream !== undefined && isSoftDeleted(stream);
  const current = stream?.lastRevision ?? -1;
  if (expected === 'stream_exists') {
    if (softDeleted) return { kind: 'stream-deleted' };
    if (current < 0 && !written.hasMetadata) return WRONG;
  }
  if (expected === 'any' || expected === 'stream_exists') return decideByRecentIds(ids, softDeleted, written);

  const expectedRevision = expected === 'no_stream' ? -1 : expected;
  if (expectedRevision > current) return WRONG;
  if (expectedRevision === current) return { kind: 'write', revive: softDeleted };
  return decideByIdsInLog(expectedRevision, ids, softDeleted, written);
}

/** Best effort: an append without an exact revision is recognised while its ids are remembered. */
function decideByRecentIds(ids: readonly string[], softDeleted: boolean, written: WrittenEvents): Decision {
  let last: WrittenEvent | undefined;
  for (const id of ids) {
    const event = written.recent(id);
    if (!event) return last ? WRONG : { kind: 'write', revive: softDeleted };
    last = event;
  }
  return last ? { kind: 'repeated', event: last } : { kind: 'write', revive: softDeleted };
}

/** The stream has gone on: only the same events at the same revisions are a repeat. */
function decideByIdsInLog(
  expectedRevision: number,
  ids: readonly string[],
  softDeleted: boolean,
  written: WrittenEvents,
): Decision {
  let last: WrittenEvent | undefined;
  for (const [index, id] of ids.entries()) {
    const revision = expectedRevision + 1 + index;
    const event = written.at(revision);
    if (event?.id === id) {
      last = { revision, position: event.position };
      continue;
    }
    return index === 0 && expectedRevision === -1 && softDeleted ? { kind: 'write', revive: true } : WRONG;
  }
  return last ? { kind: 'repeated', event: last } : WRONG;
}
