import type { InteractionRef } from '#libs/features/interactions/index.ts';

import type { RunInChannel } from './run.channel.ts';

/** Between two deltas while a model writes: shorter than a reader notices, longer than a write takes. */
const MIN_INTERVAL_MS = 20;

/**
 * The text of a response on its way to subscribers. Pieces that arrive while a delta is written go into the next one, so
 * a fast model costs few writes. A delta that cannot be written ends the stream of deltas: the text is shown when the
 * response is complete.
 */
export class ResponseDraft {
  readonly #channel: Pick<RunInChannel, 'putDraft'>;
  readonly #ref: InteractionRef;
  /** Length that the draft has, in UTF-16 code units. */
  #written = 0;
  #text: string;
  #writing: Promise<void> | null = null;
  #isBroken = false;

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
    this.#text += piece;
    this.#writing ??= this.#write();
  }

  /** Waits until all is written. */
  async settled(): Promise<void> {
    while (this.#writing !== null) await this.#writing;
  }

  async #write(): Promise<void> {
    try {
      while (!this.#isBroken && this.#text.length !== this.#written) {
        const { length } = this.#text;
        const startedAt = performance.now();
        // An earlier attempt at the step may have left its draft.
        this.#isBroken =
          !(await this.#channel.putDraft(this.#ref, this.#written, this.#text.slice(this.#written, length))) &&
          !(await this.#channel.putDraft(this.#ref, null, this.#text.slice(0, length)));
        this.#written = length;
        const leftMs = MIN_INTERVAL_MS - (performance.now() - startedAt);
        if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs));
      }
    } catch {
      this.#isBroken = true;
    } finally {
      this.#writing = null;
    }
  }
}
