// EventLog on one LMDB file.
import type { Commit, EventLog } from './event-log.ts';
import { LogReader } from './log-reader.ts';
import { LogWriter } from './log-writer.ts';
import { Storage } from './storage.ts';

/**
 * Opens (or creates) the log in `folder`, which must exist. The caller holds the lock of `data-folder.ts`.
 * @param shortCommitMs as in `Storage`
 * @throws Error when the folder cannot be used or holds another format
 */
export function openEventLog(folder: string, shortCommitMs?: number): EventLog {
  const storage = new Storage(folder, shortCommitMs);
  const listeners = new Set<(commit: Commit) => void>();
  const streamListeners = new Map<string, Set<() => void>>();
  const writer: LogWriter = new LogWriter(storage, (commit, rows) => {
    reader.committed(rows);
    for (const listener of listeners) listener(commit);
    for (const stream of commit.streams) for (const listener of streamListeners.get(stream) ?? []) listener();
  });
  const reader: LogReader = new LogReader(storage, () => writer.position);
  return {
    keyValue: storage.keyValue,
    changes: writer.changes,
    get lastPosition() {
      return writer.position;
    },
    get pendingBytes() {
      return writer.pendingBytes;
    },
    append: (request) => writer.write({ kind: 'append', request }),
    deleteStream: (request) => writer.write({ kind: 'delete', request }),
    tombstoneStream: (request) => writer.write({ kind: 'tombstone', request }),
    streamInfo: (stream) => reader.streamInfo(stream),
    readStream: (request) => reader.readStream(request),
    readAll: (request) => reader.readAll(request),
    resolveLink: (event) => reader.resolveLink(event),
    onCommit(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onStreamCommit(stream, listener) {
      const ofStream = streamListeners.get(stream) ?? new Set();
      streamListeners.set(stream, ofStream.add(listener));
      return () => {
        ofStream.delete(listener);
        if (ofStream.size === 0 && streamListeners.get(stream) === ofStream) streamListeners.delete(stream);
      };
    },
    async close() {
      await writer.close();
      await storage.close();
    },
  };
}
