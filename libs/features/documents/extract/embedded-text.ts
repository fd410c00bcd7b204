import type { HtmlNode } from './html-node.ts';

/** Characters of a script that is parsed, of all scripts of a page, and of the texts that are taken. */
const MAX_SCRIPT = 2 * 1024 * 1024;
const MAX_SCRIPTS_LENGTH = 4 * 1024 * 1024;
const MAX_TEXT = 64 * 1024;
const MAX_DEPTH = 64;
/** A sentence, and not a label, an address or code. */
const MIN_PROSE = 60;
const MIN_WORDS = 8;
const CODE = /[{};]\s*(?:$|[}.#@a-z-])|^[\w+/=-]{60,}$|function\s*\(|=>|https?:\/\/\S+$/;
/**
 * Sentences in the data that the scripts of a page show it from, such as `__NEXT_DATA__`, in their order: for a page that
 * holds no other text.
 */
export function embeddedTexts(document: HtmlNode): string[] {
  const texts = new Texts();
  let left = MAX_SCRIPTS_LENGTH;
  const visit = (node: HtmlNode): void => {
    const script = node.name === 'script' ? (node.first?.text ?? '') : '';
    if (script.length > MIN_PROSE && script.length <= Math.min(MAX_SCRIPT, left)) {
      left -= script.length;
      const data = dataOf(script);
      if (data !== undefined) collect(data, texts, 0);
    }
    for (let child = node.first; child !== null; child = child.next) visit(child);
  };
  visit(document);
  return texts.list;
}

/** JSON, alone or assigned to a variable. */
function dataOf(script: string): unknown {
  const start = script.search(/[[{]/);
  const isData =
    start !== -1 && /^\s*(?:(?:window|self|var|let|const)[\w\s.[\]"']{0,100}=\s*)?$/.test(script.slice(0, start));
  if (!isData) return undefined;
  const end = Math.max(script.lastIndexOf('}'), script.lastIndexOf(']'));
  try {
    return JSON.parse(script.slice(start, end + 1)) as unknown;
  } catch {
    return undefined;
  }
}

function collect(value: unknown, texts: Texts, depth: number): void {
  if (typeof value === 'string') return texts.add(value);
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
  for (const member of Object.values(value)) collect(member, texts, depth + 1);
}

class Texts {
  readonly list: string[] = [];
  readonly #seen = new Set<string>();
  #left = MAX_TEXT;

  /** Adds a text that is prose, once. */
  add(value: string): void {
    if (value.length < MIN_PROSE || value.length > this.#left) return;
    const text = value
      .replace(/<[^<>]{0,2000}>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim();
    if (text.length < MIN_PROSE || text.split(' ').length < MIN_WORDS || CODE.test(text) || this.#seen.has(text))
      return;
    this.#seen.add(text);
    this.#left -= text.length;
    this.list.push(text);
  }
}
