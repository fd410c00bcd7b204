import type { Content, Extraction, PageSource, PageWithFacts } from './extraction.ts';
import { FactCollector } from './fact-collector.ts';
import { addJson } from './json-facts.ts';
import { addLinks } from './link-facts.ts';
import { addLists } from './list-facts.ts';
import { markdownBlocks } from './markdown.ts';
import { readPage } from './page.ts';
import { addSections, documentKey } from './section-facts.ts';
import { addStructuredData } from './structured-facts.ts';
import { addTables } from './table-facts.ts';

/**
 * The facts that a document states in its form: sections, tables, lists, links and structured data. The same content
 * gives the same facts with the same keys.
 */
export function extractFacts(content: Content): Extraction {
  const facts = new FactCollector(content.documentId);
  const isJson = content.contentType === 'application/json' && addJson(facts, content);
  const blocks = isJson ? [] : markdownBlocks(content.text, content.contentType !== 'text/markdown');
  const sections = isJson ? [] : addSections(facts, content, blocks);
  if (content.structured) addStructuredData(facts, content.structured, documentKey(content));
  for (const section of sections) {
    addTables(facts, section);
    addLists(facts, section);
  }
  addLinks(facts, content);
  return { ...facts.extraction(), characters: content.text.trim().length };
}

/** Reads a page, and extracts the facts of the document that it gives: with the title as its name. */
export function readPageWithFacts(bytes: Uint8Array, source: PageSource, documentId: string): PageWithFacts {
  const page = readPage(bytes, source);
  const { title, text, structured } = page;
  const { url } = source;
  const document = { documentId, name: title ?? url, url };
  const extraction = extractFacts({ ...document, contentType: 'text/markdown', text, structured });
  return { page, facts: { ...document, extraction } };
}
