/**
 * Escapes the tags of a text that arrives in pieces, so that what an agent writes shows as text. Only what begins a tag,
 * a comment or a declaration is escaped: `a < b` stays as it is.
 */
export class TagEscaper {
  #held = '';

  /** @returns the text that is certain; a `<` at its end waits for the next piece */
  add(piece: string): string {
    const text = `${this.#held}${piece}`;
    this.#held = text.endsWith('<') ? '<' : '';
    return escapedTags(text.slice(0, text.length - this.#held.length));
  }

  end(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }
}

export function escapedTags(text: string): string {
  return text.replace(/<(?=[a-zA-Z/!?])/g, '&lt;');
}
