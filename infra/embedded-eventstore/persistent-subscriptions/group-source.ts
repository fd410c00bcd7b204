// The source of a group: one stream, or `$all` through its filter. An offset is
// a revision in a stream, and a position in `$all`.
import { createFilter } from '../grpc/filter.ts';
import type { EventFilter } from '../grpc/filter.ts';
import type { EventLog } from '../log/event-log.ts';
import type { StoredEvent } from '../log/stored-event.ts';
import { ALL, isOwnStream } from './group-settings.ts';
import type { GroupFilter, GroupRecord } from './group-settings.ts';

/** Events that belong to the group, and the offset to continue at. */
export type SourcePage = { events: StoredEvent[]; next: number; isEnd: boolean };

export interface GroupSource {
  /** Looks at up to `limit` events from `offset` on, inclusive. */
  page(offset: number, limit: number): SourcePage;
  offsetOf(event: StoredEvent): number;
  onCommit(listener: () => void): () => void;
}

export function groupSource(log: EventLog, { source, filter }: Pick<GroupRecord, 'source' | 'filter'>): GroupSource {
  return source === ALL ? allSource(log, filter) : streamSource(log, source);
}

/** The offset after the last event. */
export function endOf(log: EventLog, source: string): number {
  return source === ALL ? log.lastPosition + 1 : (log.streamInfo(source).lastRevision ?? -1) + 1;
}

function streamSource(log: EventLog, stream: string): GroupSource {
  return {
    page(offset, limit) {
      const { events, next } = log.readStream({ stream, from: offset, direction: 'forwards', limit });
      const last = events.at(-1);
      return { events, next: next ?? (last ? last.revision + 1 : offset), isEnd: next === undefined };
    },
    offsetOf: (event) => event.revision,
    onCommit: (listener) => log.onStreamCommit(stream, listener),
  };
}

function allSource(log: EventLog, filter: GroupFilter | undefined): GroupSource {
  const matches: EventFilter = filter ? createFilter(filter.on, filter) : () => true;
  return {
    page(offset, limit) {
      const { events, next } = log.readAll({ from: offset, direction: 'forwards', limit });
      const last = events.at(-1);
      return {
        events: events.filter((event) => !isOwnStream(event.stream) && matches(event)),
        next: next ?? (last ? last.position + 1 : offset),
        isEnd: next === undefined,
      };
    },
    offsetOf: (event) => event.position,
    onCommit: (listener) => log.onCommit(listener),
  };
}
