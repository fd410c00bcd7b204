import type { InteractionRef } from '#libs/features/channels/index.ts';

import type { RunInChannel } from './run.channel.ts';

/** Between two deltas of a response while a model writes: shorter than a reader notices, longer than a write takes. */
const MIN_INTERVAL_MS = 20;
/** Of all responses in this process: with 200 of them, each has a delta every 200 ms. */
const MAX_WRITES_PER_SECOND = 1_000;

/**
 * The text of a response on its way to subscribers. Pieces that arrive while a delta is written go into the next one, so
 * a fast model costs few writes, and many models that write at once share a number of writes. A delta that cannot be
 * written ends the stream of deltas: the text is shown when the response is complete.
 */
export class ResponseDraft {
  /** Drafts of this process that are being written, the pauses between their deltas included. */
  static #writers = 0;

  readonly #channel: Pick<RunInChannel, 'putDraft'>;
  readonly #ref: InteractionRef;
  /** Length that the draft has, in UTF-16 code units. */
  #written = 0;
  #text: string;
  #writing: Promise<void> | null = null;
  #isBroken = false;
  /** The text is complete: what is left of it is written at once. */
  #isComplete = false;
  #endPause: () => void = () => undefined;

  /** @param text what the response begins with: the text of earlier steps */
  constructor(channel: Pick<RunInChannel, 'putDraft'>, ref: InteractionRef, text: string) {
    this.#channel = channel;
    this.#ref = ref;
    this.#text = text;
  }

  get text(): string {
    return this.#text;
  }

  add(piece: string): void {
    if (piece === '') return;
    this.#text += piece;
    this.#writing ??= this.#write();
  }

  /** Waits until all is written. Nothing may be added after it. */
  async settled(): Promise<void> {
    this.#isComplete = true;
    this.#endPause();
    while (this.#writing !== null) await this.#writing;
  }

  async #write(): Promise<void> {
    ResponseDraft.#writers += 1;
    try {
      while (!this.#isBroken && this.#text.length !== this.#written) {
        const { length } = this.#text;
        const startedAt = performance.now();
        // An earlier attempt at the step may have left its draft.
        this.#isBroken =
          !(await this.#channel.putDraft(this.#ref, this.#written, this.#text.slice(this.#written, length))).ok &&
          !(await this.#channel.putDraft(this.#ref, null, this.#text.slice(0, length))).ok;
        this.#written = length;
        await this.#pauseSince(startedAt);
      }
    } catch {
      this.#isBroken = true;
    } finally {
      ResponseDraft.#writers -= 1;
      this.#writing = null;
    }
  }

  async #pauseSince(startedAt: number): Promise<void> {
    const share = (1_000 * ResponseDraft.#writers) / MAX_WRITES_PER_SECOND;
    const leftMs = Math.max(MIN_INTERVAL_MS, share) - (performance.now() - startedAt);
    if (leftMs <= 0 || this.#isComplete) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, leftMs);
    this.#endPause = resolve;
    await promise;
    clearTimeout(timer);
  }
}
