// The LMDB file: its tables, their keys, and the transaction of one commit.
// WARNING: names, keys and values here are the format on disk.
//
//   log      position            -> frame (see stored-event.ts)
//   streams  stream name         -> StreamState
//   index    stream number, rev. -> position
//   values   any key             -> any bytes (checkpoints, group settings)
//   about    'format'            -> number of this layout
import { LRUCache } from 'lru-cache';
import { createHash } from 'node:crypto';
import { messageOf } from '#libs/kernel/faults.ts';
import { open, type Database, type RootDatabase } from 'lmdb';
import { LogWriteError, type DurableKeyValue } from './event-log.ts';
import { StoredEvent } from './stored-event.ts';
import type { StreamState } from './stream-state.ts';

const FORMAT = 1;
/** Address space that LMDB reserves, so that the map need not move; the file itself grows with the data. */
const MAP_BYTES = 16 * 1024 ** 3;
const MAX_NAME_BYTES = 500;
/** Milliseconds. To hand a commit to a thread of LMDB's takes about as long as a commit on a fast disk: about 1. */
const SHORT_COMMIT_MS = 2;
/** For the states of the streams that were used last. */
const MAX_STATES_BYTES = 4 * 1024 * 1024;
const BYTES_PER_STATE = 250;

type Bytes = Database<Buffer, Buffer>;

export type CommitRows = {
  log: { position: number; frame: Buffer }[];
  index: { streamNumber: number; revision: number; position: number }[];
  streams: Map<string, StreamState>;
};

export class Storage {
  readonly keyValue: DurableKeyValue;
  #root: RootDatabase;
  #log: Bytes;
  #index: Bytes;
  #streams: Database<StreamState, Buffer>;
  /** As on disk; `missing` for a stream without a state. A failed commit may have been stored: its states are read again. */
  readonly #states = new LRUCache<string, StreamState | 'missing'>({
    maxSize: MAX_STATES_BYTES,
    sizeCalculation: (_state, name) => BYTES_PER_STATE + 2 * name.length,
  });
  #values: Bytes;
  #shortCommitMs: number;
  /** How long the last commit took. */
  #commitMs = 0;

  /**
   * @param shortCommitMs a commit is made on this thread, where reads wait for it, if the last one took less than this
   * @throws Error when the folder cannot be used or holds another format
   */
  constructor(folder: string, shortCommitMs = SHORT_COMMIT_MS) {
    this.#shortCommitMs = shortCommitMs;
    this.#root = open({
      path: `${folder}/events.mdb`,
      mapSize: MAP_BYTES,
      // LMDB flushes a commit before it reports it, not after.
      overlappingSync: false,
      // LogWriter makes the batches. A failed batch of lmdb rejects a promise that it does not return: an uncaught error.
      eventTurnBatching: false,
    });
    const bytes = { encoding: 'binary', keyEncoding: 'binary' } as const;
    this.#log = this.#root.openDB<Buffer, Buffer>('log', bytes);
    this.#index = this.#root.openDB<Buffer, Buffer>('index', bytes);
    this.#values = this.#root.openDB<Buffer, Buffer>('values', bytes);
    this.#streams = this.#root.openDB<StreamState, Buffer>('streams', { keyEncoding: 'binary' });
    const about = this.#root.openDB<number, string>('about', {});
    const format = about.get('format');
    if (format === undefined) about.putSync('format', FORMAT);
    else if (format !== FORMAT) throw new Error(`the data has format ${format}, this version reads format ${FORMAT}`);
    this.keyValue = {
      get: (key) => this.#values.get(Buffer.from(key)),
      entries: (prefix) => this.#entries(prefix),
      put: (key, value) => this.#durably(() => this.#values.put(Buffer.from(key), Buffer.from(value))),
      delete: (key) => this.#durably(() => this.#values.remove(Buffer.from(key))),
    };
  }

  /** The newest event; undefined in an empty log. */
  lastEvent(): StoredEvent | undefined {
    for (const { value } of this.#log.getRange({ reverse: true, limit: 1 })) return new StoredEvent(value);
    return undefined;
  }

  streamCount(): number {
    return this.#streams.getCount();
  }

  /** Shared: callers change copies only. */
  stream(name: string): Readonly<StreamState> | undefined {
    let state = this.#states.get(name);
    if (state === undefined) this.#states.set(name, (state = this.#streams.get(nameKey(name)) ?? 'missing'));
    return state === 'missing' ? undefined : state;
  }

  event(position: number): StoredEvent | undefined {
    const frame = this.#log.get(positionKey(position));
    return frame && new StoredEvent(frame);
  }

  /** Position of an event, also of a truncated one. */
  position(streamNumber: number, revision: number): number | undefined {
    return this.#index.get(indexKey(streamNumber, revision))?.readDoubleBE();
  }

  /** Events from `from` on (inclusive) in position order, read lazily. */
  *events(from: number, direction: 'forwards' | 'backwards', limit: number): Generator<StoredEvent> {
    const reverse = direction === 'backwards';
    for (const { value } of this.#log.getRange({ start: positionKey(from), reverse, limit })) {
      yield new StoredEvent(value);
    }
  }

  /** Writes all rows in one transaction; resolves when they are on disk. @throws LogWriteError (rejects) */
  async commit(rows: CommitRows): Promise<void> {
    const startedAt = performance.now();
    const write = () => this.#put(rows);
    try {
      await this.#durably(async () => {
        if (this.#commitMs < this.#shortCommitMs) this.#root.transactionSync(write);
        else await this.#root.batch(write);
      });
      // Only flushed commits can be read, so this detects a promise that resolves too early.
      const last = rows.log.at(-1);
      if (last && !this.#log.doesExist(positionKey(last.position))) throw new LogWriteError('the commit is missing');
      for (const [name, state] of rows.streams) this.#states.set(name, state);
    } catch (error) {
      for (const name of rows.streams.keys()) this.#states.delete(name);
      throw error;
    }
    this.#commitMs = performance.now() - startedAt;
  }

  #put({ log, index, streams }: CommitRows): void {
    for (const { position, frame } of log) void this.#log.put(positionKey(position), frame);
    for (const { streamNumber, revision, position } of index) {
      void this.#index.put(indexKey(streamNumber, revision), doubleBytes(position));
    }
    for (const [name, state] of streams) void this.#streams.put(nameKey(name), state);
  }

  #entries(prefix: string): { key: string; value: Buffer }[] {
    const range = this.#values.getRange({ start: Buffer.from(prefix), end: Buffer.from(`${prefix}\u{10ffff}`) });
    return Array.from(range, ({ key, value }) => ({ key: key.toString('utf8'), value }));
  }

  /** Waits for writes under way. */
  async close(): Promise<void> {
    await this.#root.close();
  }

  async #durably(write: () => Promise<unknown>): Promise<void> {
    try {
      await write();
    } catch (error) {
      throw new LogWriteError(await reasonOf(error), { cause: error });
    }
  }
}

/** The error of lmdb holds a promise that rejects with the actual reason. */
async function reasonOf(error: unknown): Promise<string> {
  if (!(error instanceof Error)) return String(error);
  if (!('commitError' in error)) return error.message;
  try {
    await error.commitError;
    return error.message;
  } catch (reason) {
    return messageOf(reason);
  }
}

function writeSafeInteger(target: Buffer, value: number, offset: number): void {
  target.writeUInt32BE(Math.floor(value / 2 ** 32), offset);
  target.writeUInt32BE(value % 2 ** 32, offset + 4);
}

function positionKey(position: number): Buffer {
  const key = Buffer.allocUnsafe(8);
  writeSafeInteger(key, position, 0);
  return key;
}

function indexKey(streamNumber: number, revision: number): Buffer {
  const key = Buffer.allocUnsafe(16);
  writeSafeInteger(key, streamNumber, 0);
  writeSafeInteger(key, revision, 8);
  return key;
}

function doubleBytes(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(8);
  bytes.writeDoubleBE(value);
  return bytes;
}

/** Hashes long names, because LMDB limits keys. The first byte distinguishes the two kinds. */
function nameKey(name: string): Buffer {
  const bytes = Buffer.from(`n${name}`);
  return bytes.length <= MAX_NAME_BYTES ? bytes : Buffer.from(`h${createHash('sha256').update(name).digest('hex')}`);
}
