import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2';

import { admitText } from '#libs/kernel/text.ts';

/** Values of the attributes that readers ask for. The first of a name counts. */
export type Attributes = { [name in (typeof ATTRIBUTES)[number]]?: string };

const ATTRIBUTES = [
  ...(['aria-hidden', 'charset', 'class', 'colspan', 'content', 'datetime', 'hidden', 'href', 'http-equiv'] as const),
  ...(['id', 'itemid', 'itemprop', 'itemscope', 'itemtype', 'lang', 'name', 'property', 'rel', 'role'] as const),
  ...(['rowspan', 'src', 'type', 'value'] as const),
] as const;
const KNOWN: ReadonlySet<string> = new Set(ATTRIBUTES);
/** Longer values are cut. */
const MAX_VALUE = 8_192;

export interface HtmlHandler {
  /** @param selfClosing written as `<name/>` */
  open(name: string, attributes: Attributes, selfClosing: boolean): void;
  close(name: string): void;
  text(text: string): void;
}

const NONE: Attributes = Object.freeze({});

/** Tokens of HTML in one pass. Elements are neither matched nor nested: that is the handler's part. */
export function readTokens(html: string, handler: HtmlHandler): void {
  const tokenizer = new Tokenizer({}, new Tokens(html, handler));
  tokenizer.write(html);
  tokenizer.end();
}

class Tokens implements TokenizerCallbacks {
  readonly #html: string;
  readonly #handler: HtmlHandler;
  #name = '';
  #attributes: Attributes = NONE;
  #attribute: keyof Attributes | null = null;
  #value = '';

  constructor(html: string, handler: HtmlHandler) {
    this.#html = html;
    this.#handler = handler;
  }

  onopentagname(start: number, end: number): void {
    this.#name = this.#html.slice(start, end).toLowerCase();
    this.#attributes = NONE;
  }

  onattribname(start: number, end: number): void {
    const name = end - start > 12 ? '' : this.#html.slice(start, end).toLowerCase();
    this.#attribute = KNOWN.has(name) ? (name as keyof Attributes) : null;
    this.#value = '';
  }

  onattribdata(start: number, end: number): void {
    if (this.#attribute !== null && this.#value.length < MAX_VALUE) {
      this.#value += admitText(this.#html.slice(start, end), MAX_VALUE);
    }
  }

  onattribentity(codepoint: number): void {
    if (this.#attribute !== null && this.#value.length < MAX_VALUE) this.#value += String.fromCodePoint(codepoint);
  }

  onattribend(): void {
    if (this.#attribute === null) return;
    if (this.#attributes === NONE) this.#attributes = {};
    this.#attributes[this.#attribute] ??= this.#value;
  }

  onopentagend(): void {
    this.#handler.open(this.#name, this.#attributes, false);
  }

  onselfclosingtag(): void {
    this.#handler.open(this.#name, this.#attributes, true);
  }

  onclosetag(start: number, end: number): void {
    this.#handler.close(this.#html.slice(start, end).toLowerCase());
  }

  ontext(start: number, end: number): void {
    this.#handler.text(this.#html.slice(start, end));
  }

  ontextentity(codepoint: number): void {
    this.#handler.text(String.fromCodePoint(codepoint));
  }

  oncdata(start: number, end: number): void {
    this.#handler.text(this.#html.slice(start, end - 2));
  }

  oncomment(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}
  onend(): void {}
}
