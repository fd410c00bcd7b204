import type { HtmlNode } from './html-node.ts';

/** A formula in MathML: its TeX, where the page has it, else its signs in one line. */
export function formulaOf(math: HtmlNode): string {
  const tex = math.find(
    ({ name, list }) => name === 'annotation' && list.some(({ value }) => /x-tex|latex/i.test(value)),
  );
  return ` ${tex === null ? inLine(math) : tex.content().trim()} `;
}

const BETWEEN = new Map([
  ['msup', '^'],
  ['msub', '_'],
  ['mover', '^'],
  ['munder', '_'],
  ['mfrac', '/'],
]);

function inLine(node: HtmlNode): string {
  if (node.isText) return node.text.replace(/\s+/g, ' ');
  if (node.name.startsWith('annotation')) return '';
  const parts: string[] = [];
  for (let child = node.first; child !== null; child = child.next) {
    const text = inLine(child);
    if (text.trim() !== '') parts.push(text);
  }
  const between = BETWEEN.get(node.name);
  if (node.name === 'msqrt') return `√(${parts.join('')})`;
  return between === undefined ? parts.join('') : parts.map(grouped).join(between);
}

function grouped(text: string): string {
  return [...text.trim()].length > 1 ? `(${text.trim()})` : text.trim();
}
