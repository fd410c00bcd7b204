import type { Token } from 'parse5';

import { flagsOf } from './html-elements.ts';

/** Values of attributes by their names, as the page writes them. */
export type Attributes = Readonly<Record<string, string>>;

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

  attribute(name: string): string | undefined {
    return this.list.find((attribute) => attribute.name === name)?.value;
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
    return Object.fromEntries(this.list.map(({ name, value }) => [name, value]));
  }
}
