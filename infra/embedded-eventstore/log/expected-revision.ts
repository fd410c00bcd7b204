// Decides appends as the real server does: by the expected revision and, for repeats, the ids of the events. Pure.
import type { ExpectedRevision } from './event-log.ts';
import { isSoftDeleted, type StreamState } from './stream-state.ts';

export type WrittenEvent = { revision: number; position: number };

/** Events written before, as the decision needs them. */
export interface WrittenEvents {
  /** The event at a revision of the stream. */
  at(revision: number): { id: string; position: number } | undefined;
  /** An event of the stream by id; recent events only. */
  recent(id: string): WrittenEvent | undefined;
  /** A stream with metadata exists even without events. */
  hasMetadata: boolean;
}

/**
 * - `write`: append after the last revision; `revive` when the stream was soft-deleted.
 * - `repeated`: the log already has these events; `event` is the last.
 */
export type Decision =
  | { kind: 'write'; revive: boolean }
  | { kind: 'repeated'; event: WrittenEvent }
  | { kind: 'wrong-revision' }
  | { kind: 'stream-deleted' };

const WRONG: Decision = { kind: 'wrong-revision' };

/** Decides an append of events with these ids to a stream (`undefined`: never written). */
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

/** Best effort: recognises a repeat while its ids are remembered. */
function decideByRecentIds(ids: readonly string[], softDeleted: boolean, written: WrittenEvents): Decision {
  const events = ids.map((id) => written.recent(id));
  if (!events[0]) return { kind: 'write', revive: softDeleted };
  const last = events.at(-1);
  return last && !events.includes(undefined) ? { kind: 'repeated', event: last } : WRONG;
}

/** The stream is longer: only the same events at the same revisions are a repeat. */
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
