/*
 * The form of texts: Markdown. Pages and PDFs are written in it, and facts are found in what it reads, whether Parley wrote the text or
 * someone else. What is written here is read here as it was: see the property in `markdown.test.ts`.
 */

/** A line of a block, without the signs that make it one. `offset` is where its text begins in the document. */
export interface Line {
  readonly text: string;
  readonly offset: number;
}

export type MarkdownBlock =
  | { readonly kind: 'heading'; readonly level: number; readonly title: string; readonly start: number }
  | { readonly kind: 'table'; readonly header: readonly string[]; readonly rows: readonly TableRow[] }
  | { readonly kind: 'list'; readonly items: readonly Line[] }
  | { readonly kind: 'paragraph'; readonly lines: readonly Line[] };

export interface TableRow {
  readonly cells: readonly string[];
  /** The row as it is written, from its first cell on. */
  readonly line: string;
  readonly offset: number;
}

/** Longer lines are text, whatever they begin with. */
const MAX_LINE = 10_000;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/;
const FENCE = /^\s{0,20}(?:[-*+] |\d+[.)] )?\s*(`{3,}|~{3,})/;
const ITEM = /^\s*(?:[-*+•]|\d{1,9}[.)])[ \t]+(?=\S)/;
const DELIMITERS = /^[ \t|:-]+$/;
const UNDERLINE = /^ {0,3}(=+|-{2,})[ \t]*$/;

/** The start of a line that Markdown would read as a block, or as what makes the line above a heading or a table. */
const STARTS_BLOCK =
  /^(?:#{1,6}(?=\s|$)|[-*+](?=\s)|>|`{3}|~{3}|\||\d{1,9}[.)](?=\s)|:?-{2,}|:-|[:-](?=[ \t:-]*\|)[ \t|:-]*$|=+\s*$)/gm;
/** Markdown that shows the lines as they are. @param lines `hasItems`: numbered lines are items of a list */
export function asText(lines: string, { hasItems = false } = {}): string {
  return lines.replace(STARTS_BLOCK, (start) => {
    if (!/^\d/.test(start)) return `\\${start}`;
    return hasItems ? start : `${start.slice(0, -1)}\\${start.at(-1)}`;
  });
}

/** @param title one line */
export function headingOf(level: number, title: string): string {
  // Signs at its end would be those of the heading.
  return `${'#'.repeat(level)} ${title.replace(/(?<=\s)#+$/, '\\$&')}`;
}

/** Code, between fences that are longer than those that it holds. */
export function codeOf(code: string): string {
  let longest = 2;
  for (const [run] of code.matchAll(/`{3,}/g)) longest = Math.max(longest, run.length);
  const fence = '`'.repeat(Math.min(longest + 1, 20));
  return `${fence}\n${code}\n${fence}`;
}

/** @param header no cells: the table has none */
export function tableOf(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const width = Math.max(header.length, ...rows.map((row) => row.length));
  const line = (row: readonly string[]): string => {
    const cells = Array.from({ length: width }, (_, column) => row[column] ?? '');
    return `| ${cells.map((cell) => cell.replace(/\s+/g, ' ').replaceAll('|', '\\|')).join(' | ')} |`;
  };
  return [line(header), `|${' --- |'.repeat(width)}`, ...rows.map(line)].join('\n');
}

/** The blocks of a Markdown text that facts come from, in their order. Code has none. */
export function markdownBlocks(text: string, isPlain: boolean): MarkdownBlock[] {
  return new BlockReader(text, isPlain).read();
}

class BlockReader {
  readonly #text: string;
  readonly #isPlain: boolean;
  readonly #blocks: MarkdownBlock[] = [];
  #at = 0;
  #items: Line[] = [];
  #lines: Line[] = [];

  constructor(text: string, isPlain: boolean) {
    this.#text = text;
    this.#isPlain = isPlain;
  }

  read(): MarkdownBlock[] {
    while (this.#at < this.#text.length) this.#readLine();
    this.#endText();
    return this.#blocks;
  }

  #readLine(): void {
    const { line, start } = this.#next();
    if (line.trim() === '') return this.#endText();
    if (line.length > MAX_LINE) return void this.#lines.push({ text: line, offset: start });
    if (!this.#isPlain) {
      const fence = FENCE.exec(line)?.[1];
      if (fence !== undefined) return this.#skipCode(fence);
      const heading = HEADING.exec(line);
      if (heading !== null) return this.#addHeading(heading[1]!.length, heading[2]!, start);
      if (this.#underlined(line)) return;
    }
    if (line.includes('|') && this.#readTable(line)) return;
    const item = ITEM.exec(line);
    if (item !== null) {
      this.#endLines();
      this.#items.push({ text: line.slice(item[0].length), offset: start + item[0].length });
      return;
    }
    // Lines that follow an item belong to it.
    if (this.#items.length > 0) return;
    const indent = line.length - line.trimStart().length;
    this.#lines.push({ text: line.trim(), offset: start + indent });
  }

  /** A line of text is a heading when the next one underlines it. */
  #underlined(line: string): boolean {
    const sign = UNDERLINE.exec(line)?.[1]?.[0];
    const title = this.#lines[0];
    if (sign === undefined || title === undefined || this.#lines.length > 1 || title.text.length > 300) return false;
    this.#lines = [];
    this.#addHeading(sign === '=' ? 1 : 2, title.text, title.offset);
    return true;
  }

  #addHeading(level: number, title: string, start: number): void {
    this.#endText();
    const text = plainText(title.replace(/[ \t]+#+[ \t]*$/, ''));
    if (text !== '') this.#blocks.push({ kind: 'heading', level, title: text, start });
  }

  #skipCode(fence: string): void {
    this.#endText();
    while (this.#at < this.#text.length) {
      const line = this.#next().line.trim();
      if (line.startsWith(fence) && line.replaceAll(fence[0]!, '') === '') return;
    }
  }

  /** @returns whether the line is the header of a table; its rows have been read then */
  #readTable(header: string): boolean {
    const before = this.#at;
    const { line } = this.#next();
    if (!line.includes('-') || !line.includes('|') || line.length > MAX_LINE || !DELIMITERS.test(line)) {
      this.#at = before;
      return false;
    }
    this.#endText();
    const rows: TableRow[] = [];
    while (this.#at < this.#text.length) {
      const row = this.#next();
      if (!row.line.includes('|')) {
        this.#at = row.start;
        break;
      }
      const indent = /^[\s|]*/.exec(row.line)![0].length;
      rows.push({ cells: cellsOf(row.line), line: row.line.slice(indent).trimEnd(), offset: row.start + indent });
    }
    this.#blocks.push({ kind: 'table', header: cellsOf(header), rows });
    return true;
  }

  #endLines(): void {
    if (this.#lines.length > 0) this.#blocks.push({ kind: 'paragraph', lines: this.#lines });
    this.#lines = [];
  }

  #endText(): void {
    this.#endLines();
    if (this.#items.length > 0) this.#blocks.push({ kind: 'list', items: this.#items });
    this.#items = [];
  }

  #next(): { readonly line: string; readonly start: number } {
    const start = this.#at;
    const end = this.#text.indexOf('\n', start);
    this.#at = end === -1 ? this.#text.length : end + 1;
    return { line: this.#text.slice(start, end === -1 ? undefined : end).replace(/\r$/, ''), start };
  }
}

function cellsOf(line: string): string[] {
  const cells = line.trim().split(/(?<!\\)\|/);
  if (cells[0]?.trim() === '') cells.shift();
  if (cells.at(-1)?.trim() === '') cells.pop();
  return cells.map((cell) => plainText(cell));
}

/** Text of a link or an image, and its target. */
export const MARKDOWN_LINK = /!?\[([^[\]\n]{0,300})\]\(<?([^()\s<>]{1,2000})>?(?:[ \t]+"[^"\n]{0,300}")?\)/g;

/** A line without the signs of Markdown. */
export function plainText(markdown: string): string {
  return markdown
    .replace(MARKDOWN_LINK, '$1')
    .replace(/\*\*([^*\n]{1,300})\*\*/g, '$1')
    .replaceAll('\\`', '')
    .replaceAll('`', '')
    .replace(/\\([\\`*_{}[\]()#+.!|>~=:-])/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();
}

/** A part of a text without the lines that are headings, or underline one. */
export function withoutHeadings(markdown: string): string {
  return markdown.replace(/^(?:#{1,6} .*|=+|-{3,})$/gm, '');
}
