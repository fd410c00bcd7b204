// Reads bounded pages from storage. Each page is a short LMDB read, so a slow client holds no snapshot.
import type { Page, ReadAllRequest, ReadStreamRequest, StreamInfo } from './event-log.ts';
import type { CommitRows, Storage } from './storage.ts';
import { parseLink, StoredEvent } from './stored-event.ts';
import {
  firstReadable,
  isMetastream,
  isSoftDeleted,
  oldestReadable,
  originalOf,
  type StreamState,
} from './stream-state.ts';

/** A page ends early when it has this many bytes. */
const MAX_PAGE_BYTES = 1024 * 1024;

const EMPTY: Page = { events: [], next: undefined };

export class LogReader {
  #storage: Storage;
  #committed: () => number;
  /** The events up to the end of the log that were written or read last. */
  #newest: readonly StoredEvent[] = [];

  /** `committed`: newest position that may be read. */
  constructor(storage: Storage, committed: () => number) {
    this.#storage = storage;
    this.#committed = committed;
  }

  /** Consumers read the events of a commit at once. */
  committed(rows: CommitRows['log']): void {
    const bytes = rows.reduce((sum, { frame }) => sum + frame.length, 0);
    if (bytes < MAX_PAGE_BYTES) this.#newest = rows.map(({ frame }) => new StoredEvent(frame));
  }

  streamInfo(stream: string): StreamInfo {
    const state = this.#storage.stream(stream);
    const lastRevision = state === undefined || state.lastRevision < 0 ? undefined : state.lastRevision;
    if (this.#isTombstoned(stream, state)) return { status: 'deleted', lastRevision };
    if (state === undefined || lastRevision === undefined || isSoftDeleted(state)) {
      return { status: 'missing', lastRevision };
    }
    return { status: 'exists', lastRevision };
  }

  readStream(request: ReadStreamRequest): Page {
    const { stream, direction, limit } = request;
    const state = this.#storage.stream(stream);
    if (state === undefined || state.lastRevision < 0 || this.#isTombstoned(stream, state)) return EMPTY;
    const last = state.lastRevision;
    const from = request.from === 'end' ? last + 1 : request.from;
    const first = firstReadable(stream, state);
    const oldestMs = oldestReadable(stream, state, Date.now()) ?? -Infinity;
    const forwards = direction === 'forwards';
    const isInRange = (revision: number) => revision >= first && revision <= last;
    const page = new PageBuilder(limit);
    let revision = forwards ? this.#firstYoungEnough(state, Math.max(from, first), oldestMs) : Math.min(from, last);
    for (; isInRange(revision) && !page.isFull; revision += forwards ? 1 : -1) {
      const event = this.#event(state, revision);
      // Backwards, events whose commit is under way come before the readable ones.
      if (!event && !forwards) continue;
      if (!event || event.createdMs < oldestMs) return { events: page.events, next: undefined };
      page.add(event);
    }
    return { events: page.events, next: isInRange(revision) ? revision : undefined };
  }

  readAll({ from, direction, limit }: ReadAllRequest): Page {
    const committed = this.#committed();
    const page = new PageBuilder(limit);
    const forwards = direction === 'forwards';
    const offset = from === 'end' ? committed + 1 : from;
    const start = forwards ? offset : Math.min(offset, committed);
    if (start < 0 || start > committed) return EMPTY;
    const newest = forwards ? this.#readAlready(start, committed, limit) : undefined;
    if (newest) return { events: newest, next: undefined };
    for (const event of this.#storage.events(start, direction, limit)) {
      if (event.position > committed || page.isFull) break;
      page.add(event);
    }
    const last = page.events.at(-1)?.position;
    if (last === undefined) return EMPTY;
    if (forwards && last === committed) this.#newest = page.events;
    const next = forwards ? last + 1 : last - 1;
    return { events: page.events, next: next >= 1 && next <= committed ? next : undefined };
  }

  /** Subscriptions and groups read the same events after each commit: the first read serves all of them. */
  #readAlready(start: number, committed: number, limit: number): StoredEvent[] | undefined {
    const [first] = this.#newest;
    const last = this.#newest.at(-1);
    if (!first || first.position > start || last?.position !== committed) return undefined;
    const events = this.#newest.filter(({ position }) => position >= start);
    return events.length <= limit ? events : undefined;
  }

  resolveLink(event: StoredEvent): StoredEvent | undefined {
    if (!event.isLink) return event;
    const link = parseLink(event.data);
    if (!link) return undefined;
    const page = this.readStream({ stream: link.stream, from: link.revision, direction: 'backwards', limit: 1 });
    const target = page.events[0];
    return target?.revision === link.revision ? target : undefined;
  }

  #isTombstoned(stream: string, state: StreamState | undefined): boolean {
    if (state?.tombstoned) return true;
    return isMetastream(stream) && this.#storage.stream(originalOf(stream))?.tombstoned === true;
  }

  /** First revision from `start` on that is not too old, by bisection: times never decrease along a stream. */
  #firstYoungEnough(state: StreamState, start: number, oldestMs: number): number {
    const isOld = (revision: number) => (this.#event(state, revision)?.createdMs ?? Infinity) < oldestMs;
    if (start > state.lastRevision || !isOld(start)) return start;
    let old = start;
    let young = state.lastRevision + 1;
    while (young - old > 1) {
      const middle = Math.floor((old + young) / 2);
      if (isOld(middle)) old = middle;
      else young = middle;
    }
    return young;
  }

  /** Undefined also for an event whose commit is under way. */
  #event(state: StreamState, revision: number): StoredEvent | undefined {
    const position = this.#storage.position(state.number, revision);
    if (position === undefined || position > this.#committed()) return undefined;
    return this.#storage.event(position);
  }
}

class PageBuilder {
  readonly events: StoredEvent[] = [];
  #limit: number;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.events.length >= this.#limit || this.#bytes >= MAX_PAGE_BYTES;
  }

  add(event: StoredEvent): void {
    this.events.push(event);
    this.#bytes += event.frame.length;
  }
}
