// Tells other threads of the process, without a message, whether a stream has changed.

/** Streams that share a counter seem to change with each other. */
const COUNTERS = 2 ** 16;

/**
 * Counts changes of streams in memory that threads share.
 *
 * Guarantee: a counter has changed before the change can be read or is acknowledged. So a reader that got the counter
 * before it read the stream, and finds it as it was, has read the stream as it is now.
 */
export class StreamChanges {
  readonly shared: SharedArrayBuffer;
  readonly #counters: Int32Array;

  /** @param shared of the `StreamChanges` in the thread of the log; default: new ones */
  constructor(shared = new SharedArrayBuffer(COUNTERS * Int32Array.BYTES_PER_ELEMENT)) {
    this.shared = shared;
    this.#counters = new Int32Array(shared);
  }

  count(streams: Iterable<string>): void {
    for (const stream of streams) Atomics.add(this.#counters, counterOf(stream), 1);
  }

  of(stream: string): number {
    return Atomics.load(this.#counters, counterOf(stream));
  }
}

/** FNV-1a. */
function counterOf(stream: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < stream.length; at++) hash = Math.imul(hash ^ stream.charCodeAt(at), 0x01000193);
  return (hash ^ (hash >>> 16)) & (COUNTERS - 1);
}
