// What a group reads: one stream, or `$all` through its filter.
import { createFilter } from '../grpc/filter.ts';
import type { EventFilter } from '../grpc/filter.ts';
import type { EventLog } from '../log/event-log.ts';
import type { StoredEvent } from '../log/stored-event.ts';
import { ALL, isOwnStream } from './group-settings.ts';
import type { GroupFilter, GroupRecord } from './group-settings.ts';

/** Events that belong to the group, and the place to go on from; undefined when nothing is left now. */
export type SourcePage = { events: StoredEvent[]; next: number; isEnd: boolean };

export interface GroupSource {
  /** Looks at up to `limit` events from `place` on, inclusive. */
  page(place: number, limit: number): SourcePage;
  placeOf(event: StoredEvent): number;
  onCommit(listener: () => void): () => void;
}

export function groupSource(log: EventLog, { source, filter }: Pick<GroupRecord, 'source' | 'filter'>): GroupSource {
  return source === ALL ? allSource(log, filter) : streamSource(log, source);
}

/** The first place after everything that is there now. */
export function endOf(log: EventLog, source: string): number {
  return source === ALL ? log.lastPosition + 1 : (log.streamInfo(source).lastRevision ?? -1) + 1;
}

function streamSource(log: EventLog, stream: string): GroupSource {
  return {
    page(place, limit) {
      const { events, next } = log.readStream({ stream, from: place, direction: 'forwards', limit });
      const last = events.at(-1);
      return { events, next: next ?? (last ? last.revision + 1 : place), isEnd: next === undefined };
    },
    placeOf: (event) => event.revision,
    onCommit: (listener) => log.onStreamCommit(stream, listener),
  };
}

function allSource(log: EventLog, filter: GroupFilter | undefined): GroupSource {
  const matches: EventFilter = filter ? createFilter(filter.on, filter) : () => true;
  return {
    page(place, limit) {
      const { events, next } = log.readAll({ from: place, direction: 'forwards', limit });
      const last = events.at(-1);
      return {
        events: events.filter((event) => !isOwnStream(event.stream) && matches(event)),
        next: next ?? (last ? last.position + 1 : place),
        isEnd: next === undefined,
      };
    },
    placeOf: (event) => event.position,
    onCommit: (listener) => log.onCommit(listener),
  };
}
