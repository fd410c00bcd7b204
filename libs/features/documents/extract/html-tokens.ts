import { decodeHTML, decodeHTMLAttribute } from 'entities';
import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2';
import { html as names, Token, type TokenHandler } from 'parse5';

import { admitText } from '#libs/kernel/text.ts';

import { KNOWN_ATTRIBUTES } from './html-node.ts';

const LONGEST_KNOWN = Math.max(...[...KNOWN_ATTRIBUTES].map(({ length }) => length));
/** Longer values are cut. */
const MAX_VALUE = 8_192;

const NONE: Token.Attribute[] = [];

/** A script holds `<!-- <script>`, whose end tags are text: only the tokenizer of parse5 knows that. */
export class NestedScript extends Error {}
const NESTED_SCRIPT = /<!--(?:(?!-->)[^])*<script[\s/>]/i;

/** The interface by which parse5's parser takes tokens. */
export type HtmlParser = TokenHandler & { readonly tokenizer: { readonly inForeignNode: boolean } };

/** Passes the tokens of a page to a parser of parse5. @throws NestedScript */
export function readTokens(html: string, parser: HtmlParser): void {
  // Without entities, the tokenizer runs to the end of a text or a value without looking at each character's meaning.
  const tokenizer = new Tokenizer({ decodeEntities: false }, new Tokens(html, parser));
  tokenizer.write(html);
  tokenizer.end();
}

const SPACE = /[\t\n\f\r ]+/y;
const LETTER = /[a-z]/i;
/** Elements whose text has no entities. */
const RAW_TEXT = new Set('iframe noembed noframes plaintext script style xmp'.split(' '));

/** Passes the tokens of htmlparser2 to parse5. */
class Tokens implements TokenizerCallbacks {
  readonly #html: string;
  readonly #parser: HtmlParser;
  /** Text that is not passed on: tokens of text are long, as tokens of characters would be slow. */
  #text = '';
  #name = '';
  #attributes: Token.Attribute[] = NONE;
  #attribute: string | null = null;
  #value = '';
  #isRawText = false;
  /** Where the text of an open `noscript` begins. */
  #noscript: number | null = null;

  constructor(html: string, parser: HtmlParser) {
    this.#html = html;
    this.#parser = parser;
  }

  /** Tells the tokenizer that no element holds text alone; within `noscript`, whose tags are not passed on, neither. */
  isInForeignContext(): boolean {
    return this.#noscript !== null || this.#parser.tokenizer.inForeignNode;
  }

  onopentagname(start: number, end: number): void {
    this.#name = this.#html.slice(start, end).toLowerCase();
    this.#attributes = [];
    this.#isRawText = RAW_TEXT.has(this.#name) && !this.isInForeignContext();
  }

  onattribname(start: number, end: number): void {
    const name = end - start > LONGEST_KNOWN ? '' : this.#html.slice(start, end).toLowerCase();
    this.#attribute = KNOWN_ATTRIBUTES.has(name) ? name : null;
    this.#value = '';
  }

  onattribdata(start: number, end: number): void {
    if (this.#attribute === null) return;
    const value = this.#html.slice(start, end);
    this.#value = admitText(value.includes('&') ? decodeHTMLAttribute(value) : value, MAX_VALUE);
  }

  onattribend(): void {
    const name = this.#attribute;
    if (name === null) return;
    const isKnown = this.#attributes.some((attribute) => attribute.name === name);
    if (!isKnown) this.#attributes.push({ name, value: this.#value });
  }

  onopentagend(end: number): void {
    this.#startTag(false, end);
  }

  onselfclosingtag(end: number): void {
    this.#startTag(true, end);
  }

  #startTag(selfClosing: boolean, end: number): void {
    if (this.#noscript !== null) return;
    this.#passText();
    if (this.#name === 'noscript' && !this.isInForeignContext()) this.#noscript = end + 1;
    const token = this.#token(Token.TokenType.START_TAG, this.#name, this.#attributes);
    token.selfClosing = selfClosing;
    this.#parser.onStartTag(token);
  }

  onclosetag(start: number, end: number): void {
    const name = this.#html.slice(start, end).toLowerCase();
    if (this.#noscript !== null) {
      if (name !== 'noscript') return;
      this.#text = this.#html.slice(this.#noscript, this.#html.lastIndexOf('<', start));
      this.#noscript = null;
    }
    this.#isRawText = false;
    if (name === 'script' && NESTED_SCRIPT.test(this.#text)) throw new NestedScript();
    this.#passText();
    this.#parser.onEndTag(this.#token(Token.TokenType.END_TAG, name, NONE));
  }

  #token(
    type: Token.TokenType.START_TAG | Token.TokenType.END_TAG,
    tagName: string,
    attrs: Token.Attribute[],
  ): Token.TagToken {
    const tagID = names.getTagID(tagName);
    return { type, tagName, tagID, selfClosing: false, ackSelfClosing: false, attrs, location: null };
  }

  ontext(start: number, end: number): void {
    if (this.#noscript !== null) return;
    // The page ends within a tag. The tokenizer passes on the name if a script, style or title may begin so.
    if (end === this.#html.length && this.#html[start - 1] === '<' && LETTER.test(this.#html[start] ?? '')) return;
    const text = this.#html.slice(start, end);
    this.#text += !this.#isRawText && text.includes('&') ? decodeHTML(text) : text;
  }

  /** The tokenizer leaves entities as they are. */
  onattribentity(): void {}
  ontextentity(): void {}

  /** Text that begins with white space is two tokens: the construction ignores the first in some places. */
  #passText(): void {
    const text = this.#text;
    if (text === '') return;
    this.#text = '';
    SPACE.lastIndex = 0;
    const space = SPACE.exec(text)?.[0] ?? '';
    const { CHARACTER, WHITESPACE_CHARACTER } = Token.TokenType;
    if (space !== '') this.#parser.onWhitespaceCharacter({ type: WHITESPACE_CHARACTER, chars: space, location: null });
    if (space.length === text.length) return;
    this.#parser.onCharacter({ type: CHARACTER, chars: text.slice(space.length), location: null });
  }

  oncdata(start: number, end: number): void {
    // Outside of SVG and MathML it is a comment, which ends with the first `>`.
    if (this.isInForeignContext()) this.#text += this.#html.slice(start, end - 2);
  }

  ondeclaration(start: number, end: number): void {
    if (this.#noscript !== null) return;
    this.#passText();
    const declared = this.#html.slice(start, Math.min(end, start + 500));
    const [, name = null, publicId = null] = /^doctype\s+([^\s>]+)(?:\s+public\s*["']([^"']*))?/i.exec(declared) ?? [];
    const type = Token.TokenType.DOCTYPE;
    this.#parser.onDoctype({ type, name, publicId, systemId: null, forceQuirks: name === null, location: null });
  }

  oncomment(): void {
    if (this.#noscript !== null) return;
    this.#passText();
    this.#parser.onComment({ type: Token.TokenType.COMMENT, data: '', location: null });
  }
  onprocessinginstruction(): void {}

  onend(): void {
    if (this.#noscript !== null) this.#text = this.#html.slice(this.#noscript);
    this.#passText();
    this.#parser.onEof({ type: Token.TokenType.EOF, location: null });
  }
}
