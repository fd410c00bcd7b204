/**
 * The text of a model as it may stand in a report: Markdown in which every citation names a source, and which holds no
 * HTML, images, definitions, or links of others. What is cleaned is the tree that a reader of Markdown sees, and the text is
 * written anew from it, so nothing is left open at its end.
 */
import type { Link, PhrasingContent, RootContent, Text } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown, gfmToMarkdown } from 'mdast-util-gfm';
import { toMarkdown } from 'mdast-util-to-markdown';
import { gfm } from 'micromark-extension-gfm';

import { citationsIn, isCitation } from './citation-forms.ts';
import { type KnownSource, withoutSourceList } from './source-lists.ts';

export interface ModelText {
  readonly text: string;
  /** By the numbers that the model was given: the first has number 1. */
  readonly sources: readonly KnownSource[];
  /** Whether the end of the text is missing: its last paragraph or item is left out then. */
  readonly isCut: boolean;
}

export interface CleanText {
  readonly markdown: string;
  /** The numbers that the model was given, of the sources that it cites, in the order of the report: the first is `[1]`. */
  readonly cited: readonly number[];
  /** Removed parts: citations of no source, and links and images whose address is none of the sources. */
  readonly removed: { readonly citations: number; readonly links: number; readonly images: number };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const MARKDOWN = new Set(['markdown', 'md']);
/** Tags without a meaning of their own, which models write for want of a sign. */
const PLAIN_TAG = /^<\/?(?:b|i|u|s|em|strong|sup|sub|small|mark|span|p|div|center|cite|a)\s*>$/i;
const LINE_BREAK = /^<br\s*\/?>$/i;
const COMMENT = /^<!--[^]*-->$/;
const NUMBERS = /^[\d\s,;–-]+$/;
/** Texts that readers of Markdown make links of, although they are not marked. Punctuation at the end is the sentence's. */
const ADDRESS = /(?:[a-z][a-z\d+.-]*:\/\/|www\.)(?:[^\s<>"'`)\]]*[^\s<>"'`)\].,:;?!*_~])?/i;
/** For `split`, which keeps the part in parentheses. */
const ADDRESSES = new RegExp(`(${ADDRESS.source})`, 'i');
const MAX_DEPTH = 6;

export function cleanText({ text, sources, isCut }: ModelText): CleanText {
  const read = blocksIn(text).flatMap((node) => (isWrapped(node) ? blocksIn(node.value) : [node]));
  const blocks = withoutSourceList(isCut ? withoutEnd(read) : read, sources);
  const cleaner = new Cleaner(sources);
  const cleaned = lowered(cleaner.blocks(blocks));
  const markdown = toMarkdown(
    { type: 'root', children: cleaned },
    { extensions: [gfmToMarkdown({ tablePipeAlign: false })], bullet: '-', emphasis: '*', rule: '-', fences: true },
  ).trim();
  return { markdown, cited: cleaner.cited, removed: cleaner.removed };
}

function blocksIn(text: string): RootContent[] {
  return fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] }).children;
}

/** Some models put all that they write into a block of code. */
function isWrapped(node: RootContent): node is Extract<RootContent, { type: 'code' }> {
  return node.type === 'code' && MARKDOWN.has(node.lang?.toLowerCase() ?? '');
}

function withoutEnd(blocks: readonly RootContent[]): RootContent[] {
  const last = blocks.at(-1);
  const rest = blocks.slice(0, -1);
  return last?.type === 'list' && last.children.length > 1
    ? [...rest, { ...last, children: last.children.slice(0, -1) }]
    : rest;
}

/** The report has a title, and its sections are of the second level. */
function lowered(blocks: RootContent[]): RootContent[] {
  if (!blocks.some((node) => node.type === 'heading' && node.depth === 1)) return blocks;
  return blocks.map((node) =>
    node.type === 'heading' ? { ...node, depth: Math.min(MAX_DEPTH, node.depth + 1) as typeof node.depth } : node,
  );
}

class Cleaner {
  readonly cited: number[] = [];
  readonly removed: Mutable<CleanText['removed']> = { citations: 0, links: 0, images: 0 };
  readonly #sources: readonly KnownSource[];
  readonly #urls: ReadonlySet<string>;

  constructor(sources: readonly KnownSource[]) {
    this.#sources = sources;
    this.#urls = new Set(sources.flatMap(({ url }) => (url === null ? [] : [normalized(url)])));
  }

  blocks(nodes: readonly RootContent[]): RootContent[] {
    return nodes.flatMap((node) => this.#block(node));
  }

  #block(node: RootContent): RootContent[] {
    switch (node.type) {
      case 'paragraph':
      case 'heading': {
        const children = this.#phrasing(node.children);
        return children.length === 0 ? [] : [{ ...node, children }];
      }
      case 'blockquote':
      case 'listItem':
      case 'list': {
        const children = this.blocks(node.children);
        return children.length === 0 ? [] : [{ ...node, children } as RootContent];
      }
      case 'table':
        return [
          {
            ...node,
            children: node.children.map((row) => ({
              ...row,
              children: row.children.map((cell) => ({ ...cell, children: this.#phrasing(cell.children) })),
            })),
          },
        ];
      case 'html':
        return COMMENT.test(node.value)
          ? []
          : [{ type: 'paragraph', children: withoutAddresses(textNode(node.value)) }];
      case 'code':
        return [{ ...node, meta: null }];
      case 'thematicBreak':
        return [node];
      // Definitions would give what follows in the report an address, and a number another meaning.
      default:
        return [];
    }
  }

  #phrasing(nodes: readonly PhrasingContent[]): PhrasingContent[] {
    // Without what is not of plain text first: a citation may have tags, emphasis or a link within its brackets.
    return trimmed(this.#cited(this.#plain(nodes)));
  }

  #plain(nodes: readonly PhrasingContent[]): PhrasingContent[] {
    return joined(nodes.flatMap((node) => this.#plainNode(node)));
  }

  #plainNode(node: PhrasingContent): PhrasingContent[] {
    switch (node.type) {
      case 'text':
      case 'inlineCode':
      case 'break':
        return [node];
      case 'emphasis':
      case 'strong':
      case 'delete': {
        const children = this.#plain(node.children);
        const [only] = children;
        return children.length === 1 && only?.type === 'text' && NUMBERS.test(only.value)
          ? [only]
          : [{ ...node, children }];
      }
      case 'html':
        if (LINE_BREAK.test(node.value)) return [textNode(' ')];
        return PLAIN_TAG.test(node.value) || COMMENT.test(node.value) ? [] : [textNode(node.value)];
      case 'footnoteReference':
        return [textNode(`[^${node.label ?? node.identifier}]`)];
      case 'image':
      case 'imageReference':
        this.removed.images += 1;
        return node.alt ? [textNode(node.alt)] : [];
      case 'linkReference':
      case 'link':
        return this.#link(node);
      default:
        return [];
    }
  }

  #link(node: Extract<PhrasingContent, { type: 'link' | 'linkReference' }>): PhrasingContent[] {
    const children = this.#plain(node.children);
    const label = children.map((one) => ('value' in one ? one.value : '')).join('');
    if (isCitation(label)) return [textNode(citationsIn(label).length > 0 ? label : `[${label.trim()}]`)];
    if (node.type === 'linkReference')
      return isCitation(node.identifier) ? [...children, textNode(`[${node.identifier}]`)] : children;
    if (this.#urls.has(normalized(node.url))) return [{ type: 'link', url: node.url, title: null, children }];
    // Of an address that is its own text, nothing is lost.
    if (!ADDRESS.test(label) && node.url !== `mailto:${label}`) this.removed.links += 1;
    return children;
  }

  /** With citations as the report numbers them, and with addresses as code: removed tags and citations leave some. */
  #cited(nodes: readonly PhrasingContent[]): PhrasingContent[] {
    return nodes.flatMap((node): PhrasingContent[] => {
      if (node.type === 'text') return this.#citedText(node.value).flatMap(withoutAddresses);
      if (node.type === 'link' && isItsAddress(node)) return [node];
      return 'children' in node ? [{ ...node, children: this.#cited(node.children) } as PhrasingContent] : [node];
    });
  }

  #numberOf(given: number): number {
    if (!this.cited.includes(given)) this.cited.push(given);
    return this.cited.indexOf(given) + 1;
  }

  #citedText(text: string): PhrasingContent[] {
    const nodes: PhrasingContent[] = [];
    let from = 0;
    for (const { index, length, numbers } of citationsIn(text)) {
      const known = numbers.filter((number) => number >= 1 && number <= this.#sources.length);
      this.removed.citations += Math.max(numbers.length - known.length, numbers.length === 0 ? 1 : 0);
      const before = text.slice(from, index);
      from = index + length;
      nodes.push(textNode(known.length > 0 ? before : before.trimEnd()));
      if (known.length === 0 && /^[\p{L}\p{N}]/u.test(text.slice(from))) nodes.push(textNode(' '));
      const shown = known.map((number) => this.#numberOf(number));
      // As HTML, which is written as it is: as text, the brackets would be escaped.
      if (shown.length > 0) nodes.push({ type: 'html', value: shown.map((number) => `[${number}]`).join('') });
      // Would be the address of a link, or of a definition.
      if (/^[:(]/.test(text.slice(from))) nodes.push(textNode(' '));
    }
    return joined([...nodes, textNode(text.slice(from))]);
  }
}

function textNode(value: string): Text {
  return { type: 'text', value };
}

/** A text whose addresses are code, which no reader makes links of. Other nodes stay. */
function withoutAddresses(node: PhrasingContent): PhrasingContent[] {
  if (node.type !== 'text') return [node];
  return node.value
    .split(ADDRESSES)
    .map((part, index): PhrasingContent => (index % 2 === 1 ? { type: 'inlineCode', value: part } : textNode(part)))
    .filter((part) => part.type !== 'text' || part.value !== '');
}

function isItsAddress({ url, children }: Link): boolean {
  const [only] = children;
  return children.length === 1 && only?.type === 'text' && only.value === url;
}

/** Neighbouring texts as one. */
function joined(nodes: readonly PhrasingContent[]): PhrasingContent[] {
  return nodes.reduce<PhrasingContent[]>((all, node) => {
    const last = all.at(-1);
    if (node.type === 'text' && last?.type === 'text') all[all.length - 1] = textNode(last.value + node.value);
    else if (node.type !== 'text' || node.value !== '') all.push(node);
    return all;
  }, []);
}

/** Without blanks at the ends, and without what has no text. */
function trimmed(nodes: readonly PhrasingContent[]): PhrasingContent[] {
  const kept = nodes.filter((node) => !('children' in node) || node.children.length > 0);
  const isBlank = (node: PhrasingContent | undefined): boolean =>
    node?.type === 'break' || (node?.type === 'text' && node.value.trim() === '');
  while (isBlank(kept[0])) kept.shift();
  while (isBlank(kept.at(-1))) kept.pop();
  return kept;
}

/** Addresses that differ in what a browser adds by itself are equal. */
function normalized(url: string): string {
  return URL.parse(url)?.href ?? url;
}
