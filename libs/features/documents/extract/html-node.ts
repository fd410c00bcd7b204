import type { Token } from 'parse5';

import { flagsOf } from './html-elements.ts';

/** Attributes that readers and the construction of the tree ask for. */
const ATTRIBUTES = [
  ...([
    'alt',
    'aria-hidden',
    'aria-level',
    'charset',
    'class',
    'color',
    'colspan',
    'content',
    'datetime',
    'encoding',
    'face',
    'height',
  ] as const),
  ...(['hidden', 'href', 'http-equiv', 'id', 'itemid', 'itemprop', 'itemscope', 'itemtype', 'label', 'lang'] as const),
  ...(['name', 'property', 'rel', 'role', 'rowspan', 'size', 'src', 'style', 'type', 'value', 'width'] as const),
] as const;
export const KNOWN_ATTRIBUTES: ReadonlySet<string> = new Set(ATTRIBUTES);

/** Values of attributes, as the page writes them. */
export type Attributes = { [name in (typeof ATTRIBUTES)[number]]?: string };

/** An element, or a text (`name` is `#text`). Children are a linked list: the standard moves nodes a lot. */
export class HtmlNode {
  readonly name: string;
  readonly namespace: string;
  readonly list: Token.Attribute[];
  /** The meaning of its name: see `html-elements.ts`. */
  readonly flags: number;
  text: string;
  /** Characters of the text that is shown, and those of them that are links: see `measure`. */
  shown = 0;
  linked = 0;
  parent: HtmlNode | null = null;
  first: HtmlNode | null = null;
  last: HtmlNode | null = null;
  next: HtmlNode | null = null;
  previous: HtmlNode | null = null;

  constructor(name: string, namespace: string, list: Token.Attribute[], text: string) {
    this.name = name;
    this.flags = flagsOf(name);
    this.namespace = namespace;
    this.list = list;
    this.text = text;
  }

  get isText(): boolean {
    return this.name === '#text';
  }

  attribute(name: keyof Attributes): string | undefined {
    const { list } = this;
    for (let at = 0; at < list.length; at += 1) if (list[at]!.name === name) return list[at]!.value;
    return undefined;
  }

  append(node: HtmlNode): void {
    node.parent = this;
    node.previous = this.last;
    if (this.last === null) this.first = node;
    else this.last.next = node;
    this.last = node;
  }

  /** The text of an element and of all that it holds. */
  content(): string {
    if (this.isText) return this.text;
    let text = '';
    for (let child = this.first; child !== null; child = child.next) text += child.content();
    return text;
  }

  /** The first element below that is looked for. */
  find(isIt: (node: HtmlNode) => boolean): HtmlNode | null {
    for (let child = this.first; child !== null; child = child.next) {
      const found = isIt(child) ? child : child.find(isIt);
      if (found !== null) return found;
    }
    return null;
  }

  attributes(): Attributes {
    const attributes: Attributes = {};
    for (const { name, value } of this.list) attributes[name as keyof Attributes] = value;
    return attributes;
  }
}
