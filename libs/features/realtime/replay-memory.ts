/** Bytes that replays may have written and readers not have taken, in the whole process, before parts become small. */
const MAX_UNSENT_BYTES = 64 * 1024 * 1024;
const SMALL_PART_BYTES = 16 * 1024;

/**
 * Memory that holds replays until they are read. Thousands of clients that resume at once and read slowly would each
 * have a whole part waiting; beyond a bound they get small ones, so that memory stays bounded and each still advances,
 * however slowly the others read.
 */
export class ReplayMemory {
  #unsentBytes = 0;

  /** Bytes that the next part of a replay may have, where `usual` is what it has when there is memory. */
  partBytes(usual: number): number {
    return this.#unsentBytes < MAX_UNSENT_BYTES ? usual : SMALL_PART_BYTES;
  }

  /** @param taken resolves when the bytes have been read, or the connection is closed */
  async hold(bytes: number, taken: Promise<void>): Promise<void> {
    this.#unsentBytes += bytes;
    try {
      await taken;
    } finally {
      this.#unsentBytes -= bytes;
    }
  }
}
