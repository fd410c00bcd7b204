const TAGS = ['think', 'thinking', 'thought'].map((name) => ({ open: `<${name}>`, close: `</${name}>` }));

/**
 * Separates the reasoning that models without a field for it write at the beginning of their text, between `<think>` and
 * `</think>`. The text arrives in pieces that may be cut anywhere. Such tags after the first word are text.
 */
export class ThinkTags {
  readonly #onText: (text: string) => void;
  readonly #onReasoning: (text: string) => void;
  /** The tag that ends the reasoning; null before and between reasoning; undefined once the text has begun. */
  #close: string | null | undefined = null;
  #held = '';
  #hasReasoned = false;

  constructor(onText: (text: string) => void, onReasoning: (text: string) => void) {
    this.#onText = onText;
    this.#onReasoning = onReasoning;
  }

  add(piece: string): void {
    if (this.#close === undefined) {
      this.#onText(piece);
      return;
    }
    this.#held += piece;
    while (this.#held !== '' && (this.#close === null ? this.#begins() : this.#ends(this.#close)));
  }

  end(): void {
    const held = this.#held;
    this.#held = '';
    if (typeof this.#close === 'string') this.#onReasoning(held);
    else if (held !== '') this.#onText(held);
  }

  /** @returns whether the held text may hold more that is certain */
  #begins(): boolean {
    const begun = this.#held.trimStart();
    const tag = TAGS.find(({ open }) => begun.startsWith(open));
    if (tag !== undefined) {
      this.#close = tag.close;
      this.#held = begun.slice(tag.open.length);
      return true;
    }
    if (TAGS.some(({ open }) => open.startsWith(begun))) return false;
    this.#close = undefined;
    // The line break after the reasoning belongs to its tag.
    this.#onText(this.#hasReasoned ? begun : this.#held);
    this.#held = '';
    return false;
  }

  #ends(close: string): boolean {
    this.#hasReasoned = true;
    const at = this.#held.indexOf(close);
    if (at >= 0) {
      this.#onReasoning(this.#held.slice(0, at));
      this.#held = this.#held.slice(at + close.length);
      this.#close = null;
      return true;
    }
    const kept = beginningAtEnd(this.#held, close);
    this.#onReasoning(this.#held.slice(0, this.#held.length - kept));
    this.#held = this.#held.slice(this.#held.length - kept);
    return false;
  }
}

/** Length of the longest end of `text` that a `tag` may begin with. */
function beginningAtEnd(text: string, tag: string): number {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length -= 1) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
