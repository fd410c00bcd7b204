import { ARTICLE_REGION, ASIDE_REGION, MAIN_REGION, type Region } from './blocks.ts';
import {
  ASIDE,
  HIDDEN,
  isAsideRole,
  meaningOf,
  NAMES_ASIDE,
  NAMES_LINE_NUMBERS,
  NAMES_POST,
  NAMES_SIGNATURE,
  OUTER_ASIDE,
} from './html-elements.ts';
import { comparable } from './generic-headings.ts';
import type { HtmlNode } from './html-node.ts';

/** Characters of `noscript` from which on it is the page for readers without scripts, and not an excuse. */
const MIN_NOSCRIPT = 300;
/** Share of the text of a page, links aside, that is its content whatever it is called. */
const MAX_ASIDE = 0.75;
/** The limit of a form: some hold all of a page, and the form of an order holds its product. */
const MAX_FORM = 0.3;
/** Texts of posts from which on a page is a conversation, their share of its text, and how much more they are than the paragraphs around. */
const MIN_POSTS = 2;
const MIN_POSTS_SHARE = 0.1;
const MIN_POSTS_RATIO = 1.5;
const HERO = /(?:^|[\s_-])(?:hero|jumbotron|masthead)(?:$|[\s_-])/i;
const HIDING_STYLE = /(?:^|[;\s])(?:display\s*:\s*none|visibility\s*:\s*hidden)/i;

/** Parts of a page that React sends later than their place, to which its script moves them. */
const STREAMED = /^S:[\da-f]+$/;
const DISCLOSED =
  /tab|panel|accordion|collaps|toggle|faq|answer|expand|content|description|spec|detail|body|more|text/i;

/** Where elements stand on a page. */
export class PageRegions {
  readonly #plain: number;
  /** Elements that hold the text of a post, when the page is a conversation. */
  readonly #posts = new Set<HtmlNode>();
  #postsPlain = 0;
  /** Characters of paragraphs outside of posts. */
  #paragraphs = 0;

  /** Measures the elements of a page. */
  constructor(document: HtmlNode) {
    this.#measure(document, false);
    this.#plain = plainOf(document);
    const isConversation =
      this.#posts.size >= MIN_POSTS &&
      this.#postsPlain >= MIN_POSTS_SHARE * this.#plain &&
      this.#postsPlain >= MIN_POSTS_RATIO * this.#paragraphs;
    if (!isConversation) this.#posts.clear();
  }

  /** Counts the characters that an element shows, and those of them that are links. */
  #measure(node: HtmlNode, isInPost: boolean): void {
    const isPost = !isInPost && isNamedPost(node);
    if (node.attribute('itemtype')?.endsWith('FAQPage')) isInPost = true;
    for (let child = node.first; child !== null; child = child.next) {
      if (child.name === '#text') {
        node.shown += child.text.trim().length;
        continue;
      }
      if (isUnread(child)) continue;
      this.#measure(child, isInPost || isPost);
      if (isUnshown(child)) continue;
      node.shown += child.shown;
      node.linked += child.linked;
    }
    if (node.name === 'a') node.linked = node.shown;
    if (node.name === 'p' && !isInPost) this.#paragraphs += plainOf(node);
    if (!isPost || node.shown === 0 || isUnshown(node)) return;
    this.#posts.add(node);
    this.#postsPlain += plainOf(node);
  }

  /** Whether the text of an element is not shown. Pages hide all that they hold until their scripts have run. */
  isHidden(node: HtmlNode): boolean {
    if (isUnshown(node)) return true;
    return isHidden(node) && !isDisclosed(node) && plainOf(node) < MAX_ASIDE * this.#plain;
  }

  /** @param outer region of the parent */
  of(node: HtmlNode, outer: Region): Region {
    const { name, flags } = node;
    const role = node.attribute('role');
    if (this.#posts.size > 0 && this.#posts.has(node)) return MAIN_REGION;
    if (this.#posts.size === 0 && (name === 'main' || role === 'main' || isHeadline(node, outer))) return MAIN_REGION;
    if (name === 'body' || name === 'html') return outer;
    if (outer === ASIDE_REGION || (flags & ASIDE) !== 0) return ASIDE_REGION;
    if (name === 'form' && plainOf(node) < MAX_FORM * this.#plain) return ASIDE_REGION;
    if ((isAsideRole(role) || isNamedAside(node)) && !this.#isContent(node)) return ASIDE_REGION;
    if ((flags & OUTER_ASIDE) !== 0 && outer < ARTICLE_REGION) return ASIDE_REGION;
    return name === 'article' && outer < ARTICLE_REGION ? ARTICLE_REGION : outer;
  }

  /** Whether an element is too large a part of the page to be beside its content. */
  #isContent(node: HtmlNode): boolean {
    return plainOf(node) >= MAX_ASIDE * this.#plain;
  }
}

function isUnshown(node: HtmlNode): boolean {
  return isUnread(node) || (node.name === 'noscript' && node.shown < MIN_NOSCRIPT);
}

function isHidden(node: HtmlNode): boolean {
  const style = node.attribute('style');
  if (style !== undefined && HIDING_STYLE.test(style)) return true;
  if ((meaningOf(node.attribute('class')) & NAMES_LINE_NUMBERS) !== 0) return true;
  return node.attribute('hidden') !== undefined || node.attribute('aria-hidden') === 'true';
}

function isNamedPost(node: HtmlNode): boolean {
  return (meaningOf(node.attribute('class')) & NAMES_POST) !== 0 || node.attribute('itemprop') === 'text';
}

function isNamedAside(node: HtmlNode): boolean {
  const isNamed = isAsideIn(node, 'class') || (isAsideIn(node, 'id') && !isAnchor(node));
  return isNamed && !wrapsCode(node);
}

/** Elements in which forums put the signatures of their users. Those of functions are headings, paragraphs and spans. */
const SIGNED = /^(?:div|blockquote|aside|section|footer|table|tr|td)$/;

function isAsideIn(node: HtmlNode, attribute: 'class' | 'id'): boolean {
  const meaning = meaningOf(node.attribute(attribute));
  return (meaning & NAMES_ASIDE) !== 0 || ((meaning & NAMES_SIGNATURE) !== 0 && SIGNED.test(node.name));
}

const HEADING = /^(?:h[1-6]|dt)$/;

/**
 * Whether the `id` of an element repeats its heading, for links to it: in documentation, sections are called `pagination`
 * or `cookies`. A box beside the content may be named after its heading too, but then the elements around it are not.
 */
function isAnchor(node: HtmlNode): boolean {
  const { name, parent } = node;
  if (HEADING.test(name) || (parent !== null && HEADING.test(parent.name))) return true;
  if (parent === null || !isNamedAsItsHeading(node)) return false;
  if (isNamedAsItsHeading(parent)) return true;
  for (let one = parent.first; one !== null; one = one.next) if (one !== node && isNamedAsItsHeading(one)) return true;
  return false;
}

function isNamedAsItsHeading(node: HtmlNode): boolean {
  const id = node.attribute('id');
  if (id === undefined) return false;
  for (let child = node.first; child !== null; child = child.next)
    if (HEADING.test(child.name)) {
      const heading = comparable(child.content()).replace(/^(?:\d+ )+/, '');
      return heading !== '' && ` ${comparable(id)}`.endsWith(` ${heading}`);
    }
  return false;
}

/** Whether readers bring the text of an element to light, as that of a tab. */
function isDisclosed(node: HtmlNode): boolean {
  const id = node.attribute('id');
  return (
    (id !== undefined && STREAMED.test(id)) ||
    DISCLOSED.test(`${node.attribute('role')} ${node.attribute('class')} ${id}`)
  );
}

/** Headings of accordions are buttons. */
function isUnread({ name, flags, parent }: HtmlNode): boolean {
  if ((flags & HIDDEN) === 0 || name === 'noscript') return false;
  return !(name === 'button' && parent !== null && /^h[1-6]$/.test(parent.name));
}

/** The headline of the content stands in a banner above it, outside of `<main>`, in the pages of many builders. */
function isHeadline({ name, parent }: HtmlNode, outer: Region): boolean {
  if (name !== 'h1' || outer === ASIDE_REGION) return false;
  for (let above = parent; above !== null; above = above.parent)
    if (HERO.test(above.attribute('class') ?? '')) return true;
  return false;
}

/** Highlighters wrap code in elements such as `code-toolbar`. */
function wrapsCode(node: HtmlNode): boolean {
  for (let child = node.first; child !== null; child = child.next) if (child.name === 'pre') return true;
  return false;
}

function plainOf({ shown, linked }: HtmlNode): number {
  return shown - linked;
}
