// The two things that can be read, a stream and `$all`, behind one shape, so
// that paging, filtering and subscribing exist once.
import type { Direction, EventLog, Page } from '../log/event-log.ts';
import type { StoredEvent } from '../log/stored-event.ts';
import { streamDeleted } from './errors.ts';

export interface ReadSource {
  /** From `from` on, inclusive. @throws CallError when the stream is deleted for ever */
  page(from: number | 'end', direction: Direction, limit: number): Page;
  /** Where an event stands in this source: its revision, or its position. */
  placeOf(event: StoredEvent): number;
  /** The first place after everything that is there now. */
  end(): number;
  /** Calls back after each commit that may have added something. */
  onCommit(listener: () => void): () => void;
}

export function allSource(log: EventLog): ReadSource {
  return {
    page: (from, direction, limit) => log.readAll({ from, direction, limit }),
    placeOf: (event) => event.position,
    end: () => log.lastPosition + 1,
    onCommit: (listener) => log.onCommit(listener),
  };
}

export function streamSource(log: EventLog, stream: string): ReadSource {
  return {
    page: (from, direction, limit) => {
      if (log.streamInfo(stream).status === 'deleted') throw streamDeleted(stream);
      return log.readStream({ stream, from, direction, limit });
    },
    placeOf: (event) => event.revision,
    end: () => (log.streamInfo(stream).lastRevision ?? -1) + 1,
    onCommit: (listener) => log.onStreamCommit(stream, listener),
  };
}
