import { cut, type FactCollector } from './fact-collector.ts';

/** Longer values are in summaries only: nothing else would have the same. */
const MAX_VALUE = 80;
const NO_VALUE = /^(?:[-–—.…?*]*|n\/?a|none|null|nil|tbd)$/i;

/** The fact that something has a value, which is a node of its own: values that are equal are the same node, which has no place. */
export function addValue(
  facts: FactCollector,
  about: { readonly source: string | null; readonly subject: string; readonly name: string },
  value: string,
  place: { readonly offset: number | null; readonly passage?: number | null },
): void {
  const text = value.trim().replace(/[\s,;]+$/, '');
  if (about.source === null || text.length > MAX_VALUE || NO_VALUE.test(text)) return;
  facts.addEdge({
    name: about.name,
    fact: `${cut(about.subject, 200)} — ${about.name}: ${text}`,
    source: about.source,
    target: facts.addNode({ key: `value:${keyOf(text)}`, name: text, summary: null, labels: ['Value'], offset: null }),
    ...place,
    isSingleValued: true,
  });
}

/** For keys that do not depend on case, width and white space. */
export function keyOf(name: string): string {
  return name.normalize('NFKC').replace(/\s+/gu, ' ').trim().toLowerCase();
}
