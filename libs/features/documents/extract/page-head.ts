import { admitText } from '#libs/kernel/text.ts';

import type { Attributes } from './html-node.ts';
import { collapse } from './markdown-writer.ts';
import type { PageLinks } from './page-links.ts';

const MAX_TITLE = 500;
const MAX_DESCRIPTION = 2_000;
const MAX_PROPERTIES = 64;
const PROPERTY =
  /^(?:og|article|product|book|profile|music|video|twitter|dc|dcterms|citation)[:._][\w:.-]{1,60}$|^(?:author|description|keywords|date)$/;
const LANGUAGE = /^[a-z]{2,3}(?:-[a-z0-9]{1,8})*$/i;

/** The description of a page by itself: title, `<meta>` and `<link>`. */
export class PageHead {
  #title: string | null = null;
  #heading: string | null = null;
  #icon: string | null = null;
  #isTouchIcon = true;
  canonical: string | null = null;
  language: string | null = null;
  readonly #robots = new Set<string>();
  readonly #properties = new Map<string, string>();
  #description: string | null = null;
  readonly #links: PageLinks;

  constructor(links: PageLinks) {
    this.#links = links;
  }

  get title(): string | null {
    const title = this.#title || this.#properties.get('og:title') || this.#heading || '';
    return title === '' ? null : admitText(title, MAX_TITLE);
  }

  get description(): string | null {
    return this.#description ?? this.#properties.get('og:description') ?? null;
  }

  get icon(): string | null {
    return this.#icon;
  }

  get robots(): { noindex: boolean; nofollow: boolean } {
    const has = (rule: string): boolean => this.#robots.has(rule) || this.#robots.has('none');
    return { noindex: has('noindex'), nofollow: has('nofollow') };
  }

  get properties(): Record<string, string> {
    return Object.fromEntries(this.#properties);
  }

  setTitle(text: string): void {
    this.#title ??= collapse(text);
  }

  setHeading(text: string): void {
    this.#heading ||= collapse(text);
  }

  setLanguage(language: string | undefined): void {
    const tag = language?.trim().replaceAll('_', '-') ?? '';
    if (LANGUAGE.test(tag)) this.language ??= tag;
  }

  meta(attributes: Attributes): void {
    const { content } = attributes;
    if (content === undefined) return;
    if (attributes['http-equiv']?.toLowerCase() === 'content-language') this.setLanguage(content);
    const name = (attributes.property ?? attributes.name ?? '').toLowerCase();
    const text = admitText(collapse(content), MAX_DESCRIPTION);
    if (name === 'robots') for (const rule of text.toLowerCase().split(/[\s,]+/)) this.#robots.add(rule);
    if (text === '') return;
    if (name === 'description') this.#description ??= text;
    if (PROPERTY.test(name) && this.#properties.size < MAX_PROPERTIES && !this.#properties.has(name)) {
      this.#properties.set(name, text);
    }
  }

  link({ rel, href }: Attributes): void {
    if (rel === undefined || href === undefined) return;
    const rels = rel.toLowerCase().split(/\s+/);
    if (rels.includes('canonical')) this.canonical ??= this.#links.resolve(href);
    const isTouchIcon = !rels.includes('icon');
    if ((!isTouchIcon || rels.includes('apple-touch-icon')) && (this.#icon === null || this.#isTouchIcon)) {
      if (this.#icon !== null && isTouchIcon) return;
      this.#icon = this.#links.resolve(href);
      this.#isTouchIcon = isTouchIcon;
    }
  }
}
