import { TextStream } from '#libs/kernel/text.ts';

/** Of the blanks before a text. */
const MAX_BLANKS = 1_000;

/** The text of a model as it arrives: admitted, and its first piece is not blank. */
export class TextFlow {
  readonly #stream = new TextStream();
  /** Blanks before the text; null once it has begun. */
  #blanks: string | null = '';

  /** @returns what is certain; may be empty */
  add(piece: string): string {
    if (this.#blanks === null) return this.#stream.add(piece);
    const text = this.#blanks + piece;
    this.#blanks = text.trim() === '' ? text.slice(0, MAX_BLANKS) : null;
    return this.#blanks === null ? this.#stream.add(text) : '';
  }

  /** @returns the rest; blank text has none */
  end(): string {
    return this.#stream.end();
  }
}
