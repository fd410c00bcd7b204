import type { Content, Link } from './extraction.ts';
import { cut, type FactCollector } from './fact-collector.ts';
import { comparable, isGeneric } from './generic-headings.ts';
import { MARKDOWN_LINK, plainText } from './markdown.ts';
import { documentKey } from './section-facts.ts';

/** Links of a document. More would outweigh what it says. */
const MAX_LINKS = 20;
const MAX_URL = 2_000;
/** Texts that say nothing of their target. */
const VAGUE =
  /^(?:home|index|here|this|link|click here|read more|more|see|source|details|hier|mehr|ici|aquí|más|здесь|这里|こちら|.?)$/iu;

/**
 * The pages of other sites that a document links to. Links within a site are its navigation: they would outnumber
 * everything else that its pages state.
 */
export function addLinks(facts: FactCollector, content: Content): void {
  const site = content.url === null ? null : siteOf(content.url);
  const links = content.structured?.links ?? (content.contentType === 'text/markdown' ? markdownLinks(content) : []);
  const seen = new Set<string>();
  for (const { url, text, offset } of links as readonly (Link & { readonly offset?: number })[]) {
    if (seen.size >= MAX_LINKS) return;
    if (url.length > MAX_URL || seen.has(url) || (siteOf(url) ?? site) === site) continue;
    seen.add(url);
    const isVague = VAGUE.test(text) || isGeneric(comparable(text));
    const name = isVague ? url : text;
    facts.addEdge({
      name: 'links to',
      fact: isVague ? url : `${cut(name, 200)}: ${url}`,
      source: documentKey(content),
      target: facts.addNode({ key: `link:${url}`, name, summary: url, labels: ['Link'], offset: offset ?? null }),
      offset: offset ?? null,
    });
  }
}

/** Null for what is not a page. */
function siteOf(url: string): string | null {
  return /^https?:\/\/([^/?#]+)/i.exec(url)?.[1]?.toLowerCase() ?? null;
}

function markdownLinks({ text }: Content): (Link & { offset: number })[] {
  const links: (Link & { offset: number })[] = [];
  for (const { 0: link, 1: name = '', 2: url = '', index } of text.matchAll(MARKDOWN_LINK)) {
    if (links.length >= 10 * MAX_LINKS) break;
    if (!link.startsWith('!')) links.push({ url, text: plainText(name), offset: index });
  }
  return links;
}
