import { BlobTooLarge } from '#libs/platform/blobs/index.ts';

const NOTHING = new Uint8Array();

/** Divides a content into parts. A content that fails ends there, and `throwFailure` says so afterwards. */
export class PartReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #maxBytes: number;
  #bytes = 0;
  #rest: Uint8Array = NOTHING;
  #hasEnded = false;
  #failure: unknown;

  constructor(content: AsyncIterable<Uint8Array>, maxBytes: number) {
    this.#source = content[Symbol.asyncIterator]();
    this.#maxBytes = maxBytes;
  }

  /** Waits for the next bytes. @throws BlobTooLarge */
  async hasMore(): Promise<boolean> {
    while (this.#rest.length === 0 && !this.#hasEnded) {
      try {
        const { done, value } = await this.#source.next();
        if (done) this.#hasEnded = true;
        else this.#rest = value;
      } catch (error) {
        this.#hasEnded = true;
        this.#failure = error;
      }
      this.#bytes += this.#rest.length;
    }
    if (this.#bytes > this.#maxBytes) throw new BlobTooLarge(this.#maxBytes);
    return this.#rest.length > 0;
  }

  /** Up to `maxBytes` of what comes next. */
  async *part(maxBytes: number): AsyncGenerator<Uint8Array> {
    for (let left = maxBytes; left > 0 && (await this.hasMore());) {
      const chunk = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(chunk.length);
      left -= chunk.length;
      yield chunk;
    }
  }

  throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}
