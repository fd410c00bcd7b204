// EventLog on one LMDB file.
import type {
  AppendRequest,
  Commit,
  DeleteRequest,
  DurableKeyValue,
  EventLog,
  Page,
  ReadAllRequest,
  ReadStreamRequest,
  StreamInfo,
  WriteOutcome,
} from './event-log.ts';
import { LogReader } from './log-reader.ts';
import { LogWriter } from './log-writer.ts';
import { Storage } from './storage.ts';
import type { StoredEvent } from './stored-event.ts';

/**
 * Opens (or begins) the log in `folder`, which must exist. Nobody else may have
 * it open; see `data-folder.ts` for the lock.
 * @throws Error when the folder cannot be used or holds another format
 */
export function openEventLog(folder: string): EventLog {
  return new LmdbEventLog(new Storage(folder));
}

class LmdbEventLog implements EventLog {
  readonly keyValue: DurableKeyValue;
  #storage: Storage;
  #writer: LogWriter;
  #reader: LogReader;
  #listeners = new Set<(commit: Commit) => void>();
  #streamListeners = new Map<string, Set<() => void>>();

  constructor(storage: Storage) {
    this.#storage = storage;
    this.#writer = new LogWriter(storage, (commit) => this.#publish(commit));
    this.#reader = new LogReader(storage, () => this.#writer.position);
    this.keyValue = {
      get: (key) => storage.value(key),
      entries: (prefix) => storage.values(prefix),
      put: (key, value) => storage.putValue(key, value),
      delete: (key) => storage.deleteValue(key),
    };
  }

  get lastPosition(): number {
    return this.#writer.position;
  }

  get pendingBytes(): number {
    return this.#writer.pendingBytes;
  }

  append(request: AppendRequest): Promise<WriteOutcome> {
    return this.#writer.write({ kind: 'append', request });
  }

  deleteStream(request: DeleteRequest): Promise<WriteOutcome> {
    return this.#writer.write({ kind: 'delete', request });
  }

  tombstoneStream(request: DeleteRequest): Promise<WriteOutcome> {
    return this.#writer.write({ kind: 'tombstone', request });
  }

  streamInfo(stream: string): StreamInfo {
    return this.#reader.streamInfo(stream);
  }

  readStream(request: ReadStreamRequest): Page {
    return this.#reader.readStream(request);
  }

  readAll(request: ReadAllRequest): Page {
    return this.#reader.readAll(request);
  }

  resolveLink(event: StoredEvent): StoredEvent | undefined {
    return this.#reader.resolveLink(event);
  }

  onCommit(listener: (commit: Commit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onStreamCommit(stream: string, listener: () => void): () => void {
    const listeners = this.#streamListeners.get(stream) ?? new Set();
    this.#streamListeners.set(stream, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#streamListeners.get(stream) === listeners) this.#streamListeners.delete(stream);
    };
  }

  async close(): Promise<void> {
    await this.#writer.close();
    await this.#storage.close();
  }

  #publish(commit: Commit): void {
    for (const listener of this.#listeners) listener(commit);
    for (const stream of commit.streams) for (const listener of this.#streamListeners.get(stream) ?? []) listener();
  }
}
