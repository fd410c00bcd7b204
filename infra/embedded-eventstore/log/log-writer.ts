// The single writer. Writes that arrive during a flush share the next commit
// (group commit), so a slower disk makes larger groups.
import { setImmediate as nextIteration } from 'node:timers/promises';
import { LogWriteError, type Commit, type WriteOutcome } from './event-log.ts';
import { CommitDraft, RecentIds, type Change, type LogEnd } from './commit-draft.ts';
import type { CommitRows, Storage } from './storage.ts';
import { StreamChanges } from './stream-changes.ts';

/** Limit of one commit, so that its flush is short. */
const MAX_COMMIT_BYTES = 8 * 1024 * 1024;
const EVENT_OVERHEAD = 200;

type Waiting = {
  change: Change;
  bytes: number;
  resolve: (outcome: WriteOutcome) => void;
  reject: (error: Error) => void;
};

export class LogWriter {
  pendingBytes = 0;
  readonly changes = new StreamChanges();
  #storage: Storage;
  #onCommit: (commit: Commit, rows: CommitRows['log']) => void;
  #recentIds = new RecentIds();
  #end: LogEnd;
  #waiting: Waiting[] = [];
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(storage: Storage, onCommit: (commit: Commit, rows: CommitRows['log']) => void) {
    this.#storage = storage;
    this.#onCommit = onCommit;
    this.#end = endOf(storage);
  }

  /** Position of the newest durable event. */
  get position(): number {
    return this.#end.position;
  }

  write(change: Change): Promise<WriteOutcome> {
    if (this.#closed) return Promise.reject(new LogWriteError('the event store is stopping'));
    const bytes = sizeOf(change);
    this.pendingBytes += bytes;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change, bytes, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Refuses new writes, waits for accepted ones, and publishes them. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    await nextIteration();
  }

  async #run(): Promise<void> {
    // Writes of the same iteration of the event loop share the commit.
    await nextIteration();
    while (this.#waiting.length > 0) await this.#commit(this.#take());
    this.#running = undefined;
  }

  #take(): Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex((entry) => (bytes += entry.bytes) > MAX_COMMIT_BYTES);
    return this.#waiting.splice(0, end < 0 ? this.#waiting.length : Math.max(1, end));
  }

  async #commit(group: Waiting[]): Promise<void> {
    try {
      const draft = new CommitDraft(this.#storage, this.#recentIds, this.#end);
      // 1. Decide the writes, in order.
      const outcomes = group.map((entry) => draft.apply(entry.change));
      // 2. Make them durable.
      if (!draft.isEmpty) {
        // Also if it fails: the events may be on disk.
        await this.#storage.commit(draft.rows).finally(() => this.changes.count(draft.touched));
        this.#end = draft.end;
        draft.remember();
      }
      // 3. Acknowledge, then publish.
      for (const [index, entry] of group.entries()) {
        const outcome = outcomes[index];
        if (outcome) entry.resolve(outcome);
      }
      if (!draft.isEmpty) {
        const commit = { position: this.position, streams: draft.touched };
        // In the next iteration of the event loop: this one sends the acknowledgements.
        setImmediate(() => this.#onCommit(commit, draft.rows.log));
      }
    } catch (error) {
      this.#fail(group, error);
    } finally {
      for (const entry of group) this.pendingBytes -= entry.bytes;
    }
  }

  /** The whole group fails: each outcome depends on those before it. */
  #fail(group: Waiting[], error: unknown): void {
    const reason = error instanceof LogWriteError ? error : new LogWriteError(String(error), { cause: error });
    for (const entry of group) entry.reject(reason);
    // Only the disk shows what was written.
    this.#end = endOf(this.#storage);
  }
}

/** Slow, because it counts the streams: for starts and failures only. */
function endOf(storage: Storage): LogEnd {
  const last = storage.lastEvent();
  return { position: last?.position ?? 0, createdMs: last?.createdMs ?? 0, streamCount: storage.streamCount() };
}

function sizeOf(change: Change): number {
  if (change.kind !== 'append') return EVENT_OVERHEAD;
  let bytes = EVENT_OVERHEAD;
  for (const event of change.request.events) bytes += EVENT_OVERHEAD + event.data.length + event.metadata.length;
  return bytes;
}
