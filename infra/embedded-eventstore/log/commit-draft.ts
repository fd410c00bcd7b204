// A group commit in preparation: each write is decided against the stored state and the earlier writes of the same
// commit. It takes effect when its rows are on disk.
import { LRUCache } from 'lru-cache';
import { randomUUID } from 'node:crypto';
import type { AppendRequest, DeleteRequest, WriteOutcome } from './event-log.ts';
import { decideAppend, type Decision, type WrittenEvent, type WrittenEvents } from './expected-revision.ts';
import type { CommitRows, Storage } from './storage.ts';
import { encodeStoredEvent, TOMBSTONE_REVISION, type ProposedEvent } from './stored-event.ts';
import {
  isMetastream,
  isSoftDeleted,
  METADATA_TYPE,
  metadataFrom,
  metastreamOf,
  newStream,
  originalOf,
  parseTruncation,
  softDeletedMetadata,
  type StreamState,
  TOMBSTONE_TYPE,
} from './stream-state.ts';

export type Change =
  | { kind: 'append'; request: AppendRequest }
  | { kind: 'delete'; request: DeleteRequest }
  | { kind: 'tombstone'; request: DeleteRequest };

/** State of the log as a whole, for the next write. */
export type LogEnd = { position: number; createdMs: number; streamCount: number };

type DraftEvent = WrittenEvent & { id: string; stream: string };

const NO_BYTES = Buffer.alloc(0);
const RECENT_IDS_BYTES = 8 * 1024 * 1024;
const BYTES_PER_ID = 100;

/**
 * Ids of recently committed events, to recognise a repeated append without an exact revision. Best effort, as on the
 * real server: in memory, and bounded.
 */
export class RecentIds {
  #events: LRUCache<string, Omit<DraftEvent, 'id'>>;

  constructor(maxBytes = RECENT_IDS_BYTES) {
    this.#events = new LRUCache({ maxSize: maxBytes, sizeCalculation: ({ stream }) => BYTES_PER_ID + stream.length });
  }

  add({ id, ...event }: DraftEvent): void {
    this.#events.set(id, event);
  }

  /** Finds an event of this stream only. */
  find(stream: string, id: string): WrittenEvent | undefined {
    const event = this.#events.peek(id);
    return event?.stream === stream ? event : undefined;
  }
}

export class CommitDraft {
  readonly rows: CommitRows = { log: [], index: [], streams: new Map() };
  /** Streams whose listeners to call. */
  readonly touched = new Set<string>();
  /** The end of the log when this commit is durable. */
  readonly end: LogEnd;
  #storage: Storage;
  #recentIds: RecentIds;
  #byId = new Map<string, DraftEvent>();
  #byRevision = new Map<string, DraftEvent>();
  /** The newest metadata of streams whose metadata this commit changes. */
  #metadata = new Map<string, Uint8Array>();

  constructor(storage: Storage, recentIds: RecentIds, last: LogEnd) {
    this.#storage = storage;
    this.#recentIds = recentIds;
    // The time never decreases, even if the clock does: age limits are found by bisection.
    this.end = { ...last, createdMs: Math.max(last.createdMs, Date.now()) };
  }

  get isEmpty(): boolean {
    return this.rows.log.length === 0;
  }

  apply(change: Change): WriteOutcome {
    if (change.kind === 'append') return this.#append(change.request);
    return this.#delete(change.request, change.kind === 'tombstone');
  }

  /** Records the ids, when the commit is durable. */
  remember(): void {
    for (const event of this.#byId.values()) this.#recentIds.add(event);
  }

  #append({ stream, expected, events, deadline }: AppendRequest): WriteOutcome {
    if (deadline !== undefined && deadline < Date.now()) return { kind: 'deadline-passed' };
    // A metadata stream is deleted with its stream.
    if (isMetastream(stream) && this.#stream(originalOf(stream))?.tombstoned) return { kind: 'stream-deleted' };
    const ids = events.map((event) => event.id);
    const decision = this.#decide(stream, expected, ids);
    if (decision.kind !== 'write') return this.#refuse(stream, decision);

    const state = this.#streamOrNew(stream);
    const revived = state.lastRevision + 1;
    for (const event of events) this.#add(stream, state, event, state.lastRevision + 1);
    if (decision.revive) this.#setMetadata(stream, metadataFrom(this.#currentMetadata(stream), revived));
    if (isMetastream(stream)) this.#metadataWritten(originalOf(stream), events.at(-1)?.data);
    const { number, lastRevision } = state;
    if (lastRevision < 0) return { kind: 'written', revision: undefined, position: undefined };
    const drafted = this.#byRevision.get(revisionKey(stream, lastRevision));
    const position = drafted?.position ?? this.#storage.position(number, lastRevision);
    const createdMs = events.length > 0 ? { createdMs: this.end.createdMs } : {};
    return { kind: 'written', revision: lastRevision, position, ...createdMs };
  }

  #delete({ stream, expected }: DeleteRequest, isFinal: boolean): WriteOutcome {
    const id = randomUUID();
    const decision = this.#decide(stream, expected, [id]);
    if (decision.kind !== 'write') return this.#refuse(stream, decision);
    if (isFinal) {
      const state = this.#streamOrNew(stream);
      state.tombstoned = true;
      const event = { id, type: TOMBSTONE_TYPE, contentType: 'application/octet-stream' };
      const position = this.#add(stream, state, { ...event, data: NO_BYTES, metadata: NO_BYTES }, TOMBSTONE_REVISION);
      return { kind: 'written', revision: undefined, position };
    }
    const lastRevision = this.#stream(stream)?.lastRevision ?? -1;
    if (lastRevision < 0 && !this.#hasMetadata(stream)) return { kind: 'wrong-revision', current: undefined };
    const position = this.#setMetadata(stream, softDeletedMetadata());
    return { kind: 'written', revision: lastRevision < 0 ? undefined : lastRevision, position };
  }

  #decide(stream: string, expected: AppendRequest['expected'], ids: readonly string[]): Decision {
    const state = this.#stream(stream);
    const written: WrittenEvents = {
      hasMetadata: this.#hasMetadata(stream),
      recent: (id) => {
        const drafted = this.#byId.get(id);
        return drafted?.stream === stream ? drafted : this.#recentIds.find(stream, id);
      },
      at: (revision) => {
        const drafted = this.#byRevision.get(revisionKey(stream, revision));
        if (drafted || !state) return drafted;
        const position = this.#storage.position(state.number, revision);
        return position === undefined ? undefined : this.#storage.event(position);
      },
    };
    return decideAppend(state, expected, ids, written);
  }

  #refuse(stream: string, decision: Exclude<Decision, { kind: 'write' }>): WriteOutcome {
    if (decision.kind === 'repeated') return { ...decision.event, kind: 'written' };
    if (decision.kind === 'stream-deleted') return decision;
    const lastRevision = this.#stream(stream)?.lastRevision ?? -1;
    return { kind: 'wrong-revision', current: lastRevision < 0 ? undefined : lastRevision };
  }

  /** Adds one event; returns its position. */
  #add(stream: string, state: StreamState, event: ProposedEvent, revision: number): number {
    const position = ++this.end.position;
    this.rows.log.push({
      position,
      frame: encodeStoredEvent(event, { stream, revision, position, createdMs: this.end.createdMs }),
    });
    if (revision !== TOMBSTONE_REVISION) {
      state.lastRevision = revision;
      this.rows.index.push({ streamNumber: state.number, revision, position });
    }
    const drafted = { id: event.id, stream, revision, position };
    this.#byId.set(event.id, drafted);
    this.#byRevision.set(revisionKey(stream, revision), drafted);
    this.touched.add(stream);
    return position;
  }

  /** Writes a metadata event on behalf of the server. */
  #setMetadata(stream: string, data: Uint8Array): number {
    const metastream = metastreamOf(stream);
    const event = { id: randomUUID(), type: METADATA_TYPE, contentType: 'application/json', data, metadata: NO_BYTES };
    const state = this.#streamOrNew(metastream);
    const position = this.#add(metastream, state, event, state.lastRevision + 1);
    this.#useMetadata(stream, data);
    return position;
  }

  /** Applies metadata of a client. It revives a soft-deleted stream without its old events. */
  #metadataWritten(stream: string, data: Uint8Array | undefined): void {
    if (data === undefined) return;
    const state = this.#streamOrNew(stream);
    const wasDeleted = isSoftDeleted(state);
    this.#useMetadata(stream, data);
    if (wasDeleted) this.#setMetadata(stream, metadataFrom(data, state.lastRevision + 1));
  }

  #useMetadata(stream: string, data: Uint8Array): void {
    this.#streamOrNew(stream).truncation = parseTruncation(data);
    this.#metadata.set(stream, data);
    this.touched.add(stream);
  }

  #currentMetadata(stream: string): Uint8Array {
    const drafted = this.#metadata.get(stream);
    if (drafted) return drafted;
    const metastream = this.#stream(metastreamOf(stream));
    const position = metastream && this.#storage.position(metastream.number, metastream.lastRevision);
    return (position !== undefined && this.#storage.event(position)?.data) || NO_BYTES;
  }

  #hasMetadata(stream: string): boolean {
    return (this.#stream(metastreamOf(stream))?.lastRevision ?? -1) >= 0;
  }

  #stream(name: string): StreamState | undefined {
    return this.rows.streams.get(name) ?? this.#storage.stream(name);
  }

  /** The state for changes; this commit stores it. */
  #streamOrNew(name: string): StreamState {
    const drafted = this.rows.streams.get(name);
    if (drafted) return drafted;
    const stored = this.#storage.stream(name);
    const state = stored === undefined ? newStream(this.end.streamCount++) : { ...stored };
    this.rows.streams.set(name, state);
    return state;
  }
}

const revisionKey = (stream: string, revision: number): string => `${revision}@${stream}`;
