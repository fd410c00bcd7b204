import type { InteractionRef } from '#libs/features/channels/index.ts';

import type { RunInChannel } from './run.channel.ts';

/** Between two ticks: shorter than a reader notices, longer than a write takes. */
const MIN_INTERVAL_MS = 20;
/** However busy the process is, readers see text five times a second. */
const MAX_INTERVAL_MS = 200;
/** In between, ticks begin so many times as far from each other as the writes of one took: deltas get a part of the process. */
const INTERVAL_OF_WRITES = 8;
/** A store that was away is tried again after this time. */
const RETRY_MS = 1_000;

/**
 * One clock for the deltas of all responses of this process: those that have new text are written together, which is one
 * write to each node of Redis. A tick waits for no write: a response whose delta is still on its way is passed over.
 */
export class DraftTicks {
  #due = new Set<ResponseDraft>();
  #isDue = false;
  #nextAt = 0;
  #intervalMs = MIN_INTERVAL_MS;

  join(draft: ResponseDraft): void {
    this.#due.add(draft);
    if (this.#isDue) return;
    this.#isDue = true;
    setTimeout(() => this.#tick(), Math.max(0, this.#nextAt - performance.now()));
  }

  #tick(): void {
    this.#isDue = false;
    const startedAt = performance.now();
    this.#nextAt = startedAt + this.#intervalMs;
    const due = this.#due;
    this.#due = new Set();
    const writes = Array.from(due, (draft) => draft.write()).filter((write) => write !== null);
    if (writes.length === 0) return;
    // The first reply counts: a node of Redis that hangs holds up only the responses that it has.
    void Promise.race(writes).then(() => {
      const intervalMs = INTERVAL_OF_WRITES * (performance.now() - startedAt);
      this.#intervalMs = Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, intervalMs));
    });
  }
}

const TICKS = new DraftTicks();

/**
 * The text of a response on its way to subscribers. The first delta and the last one are written at once, the others at the
 * ticks of the process; pieces that arrive in between are one delta. A delta that the channel refuses ends the stream of
 * deltas: the text is shown when the response is complete. While the store is away, the text waits for it.
 */
export class ResponseDraft {
  readonly #channel: Pick<RunInChannel, 'putDraft'>;
  readonly #ref: InteractionRef;
  readonly #ticks: DraftTicks;
  #text: string;
  /** The end of the text that is not written. */
  #unwritten: string;
  #writing: Promise<void> | null = null;
  #hasBegun = false;
  #isRefused = false;
  #retryAt = 0;

  /** @param text what the response begins with: the text of earlier steps */
  constructor(channel: Pick<RunInChannel, 'putDraft'>, ref: InteractionRef, text: string, ticks = TICKS) {
    this.#channel = channel;
    this.#ref = ref;
    this.#ticks = ticks;
    this.#text = text;
    this.#unwritten = text;
  }

  add(piece: string): void {
    if (piece === '') return;
    this.#text += piece;
    this.#unwritten += piece;
    this.#continue();
  }

  /** Waits until all is written, which waits for no tick. Nothing may be added after it. */
  async settled(): Promise<void> {
    await this.#writing;
    await this.write();
  }

  /** Writes the text that is not written; null if there is none, or if an earlier delta is on its way. Does not reject. */
  write(): Promise<void> | null {
    if (this.#writing !== null || this.#unwritten === '' || this.#isRefused) return null;
    this.#hasBegun = true;
    return (this.#writing = this.#writeDelta().finally(() => {
      this.#writing = null;
      this.#continue();
    }));
  }

  #continue(): void {
    if (this.#writing !== null || this.#unwritten === '' || performance.now() < this.#retryAt) return;
    if (this.#hasBegun) this.#ticks.join(this);
    else void this.write();
  }

  async #writeDelta(): Promise<void> {
    const [text, delta] = [this.#text, this.#unwritten];
    this.#unwritten = '';
    try {
      // An earlier attempt at the step, or at this delta, may have left its draft.
      this.#isRefused =
        !(await this.#channel.putDraft(this.#ref, text.length - delta.length, delta)).ok &&
        !(await this.#channel.putDraft(this.#ref, null, text)).ok;
    } catch {
      this.#unwritten = delta + this.#unwritten;
      this.#retryAt = performance.now() + RETRY_MS;
    }
  }
}
