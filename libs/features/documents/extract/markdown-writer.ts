import { BODY_REGION, type Block, type Region } from './blocks.ts';
import { isRemark } from './generic-headings.ts';
import { asText, withoutInvisible } from './plain-text.ts';
import { MarkdownTable } from './markdown-table.ts';

const LINE_BREAK = '\u0001';
/** Signs that link headings to themselves. A final `#` without a space belongs to the name: C#. */
const PERMALINK = /(?:\s*[¶§🔗]|\s#)\s*$/u;
/** Characters of a heading that its link to itself may have. */
const MAX_PERMALINK = 2;

/** Turns text and the starts and ends of blocks into Markdown. */
export class MarkdownWriter {
  region: Region = BODY_REGION;
  /** Text of the current block. */
  #buffer = '';
  #linked = 0;
  #blocks: Block[] = [];
  #table: MarkdownTable | null = null;
  #pre = false;
  /** Level of the heading that is being written. */
  #heading = 0;
  #lastHeading = 0;
  #definitionLists = 0;
  /** Written before the first block of a list item, once. */
  #marker = '';
  #indent = '';
  #quote = '';
  /** Names that wait for their definition. */
  #term = '';

  /** Length of the text of the current block. */
  get length(): number {
    return this.#buffer.length;
  }

  text(text: string): void {
    this.#buffer += text;
  }

  /** The last character of the text of the current block. */
  get last(): string {
    return this.#buffer.at(-1) ?? '';
  }

  lineBreak(): void {
    this.#buffer += this.#pre ? '\n' : LINE_BREAK;
  }

  /** @returns text of the current block from `start` on; empty when another block has begun */
  since(start: number): string {
    return collapse(withoutInvisible(this.#buffer.slice(start)).replaceAll(LINE_BREAK, ' '));
  }

  markLinked(characters: number): void {
    this.#linked += characters;
  }

  heading(level: number): () => void {
    this.endBlock();
    this.#heading = level;
    return () => {
      this.endBlock();
      this.#heading = 0;
    };
  }

  preformatted(): () => void {
    this.endBlock();
    this.#pre = true;
    return () => {
      this.endBlock();
      this.#pre = false;
    };
  }

  quote(): () => void {
    this.endBlock();
    const before = this.#quote;
    if (before.length < 8) this.#quote += '> ';
    return () => {
      this.endBlock();
      this.#quote = before;
    };
  }

  /** @param marker `- ` or `3. ` */
  item(marker: string): () => void {
    this.endBlock();
    const indent = this.#indent;
    this.#marker = (indent.length < 20 ? indent : '') + marker;
    this.#indent = ' '.repeat(Math.min(20, this.#marker.length));
    return () => {
      this.endBlock();
      this.#marker = '';
      this.#indent = indent;
    };
  }

  definitions(): () => void {
    this.endBlock();
    this.#definitionLists += 1;
    return () => {
      this.#endTerm();
      this.#definitionLists -= 1;
    };
  }

  /** @param isSection a term that is linked to has its definition under a heading, else in a line `- term: definition` */
  term(isSection: boolean): () => void {
    if (isSection) {
      this.#endTerm();
      const [before, indent] = [this.#lastHeading, this.#indent];
      this.#indent = '';
      const end = this.heading(Math.min(6, Math.max(1, before) + this.#definitionLists));
      return () => {
        end();
        this.#lastHeading = before;
        this.#indent = indent;
      };
    }
    this.endBlock();
    return () => {
      const term = collapse(this.#buffer.replaceAll(LINE_BREAK, ' ')).replace(/\s*:$/, '');
      this.#buffer = '';
      this.#linked = 0;
      this.#term = this.#term === '' ? term : `${this.#term}, ${term}`;
    };
  }

  definition(): () => void {
    if (this.#term === '') {
      this.endBlock();
      return () => this.endBlock();
    }
    const end = this.item(`- ${this.#term}: `);
    this.#term = '';
    this.#indent = this.#indent.slice(0, 2);
    return end;
  }

  #endTerm(): void {
    this.endBlock();
    if (this.#term === '') return;
    this.#buffer = this.#term;
    this.#term = '';
    const end = this.item('- ');
    end();
  }

  table(isLayout: boolean): () => void {
    this.endBlock();
    const [outer, sink, region] = [this.#table, this.#blocks, this.region];
    outer?.markAsLayout();
    const table = new MarkdownTable(isLayout);
    this.#table = table;
    return () => {
      this.endBlock();
      this.#table = outer;
      this.#blocks = sink;
      this.#addTable(table, region);
    };
  }

  #addTable(table: MarkdownTable, region: Region): void {
    const [blocks, text] = [table.blocks(), table.markdown()];
    if (text === null) {
      for (const block of blocks) this.#blocks.push(block);
      return;
    }
    const linked = blocks.reduce((sum, block) => sum + block.linked, 0);
    this.#blocks.push({ kind: 'table', text, plain: text, linked, region });
  }

  row(): void {
    this.endBlock();
    this.#table?.startRow();
  }

  cell(isHeader: boolean, columns: string | undefined, rows: string | undefined): (() => void) | null {
    this.endBlock();
    const outer = this.#blocks;
    const sink = this.#table?.startCell(isHeader, columns, rows) ?? null;
    if (sink === null) return null;
    this.#blocks = sink;
    const [indent, quote] = [this.#indent, this.#quote];
    this.#indent = this.#quote = '';
    return () => {
      this.endBlock();
      this.#blocks = outer;
      [this.#indent, this.#quote] = [indent, quote];
    };
  }

  endBlock(): void {
    if (this.#buffer === '') return;
    const raw = withoutInvisible(this.#buffer);
    const linked = this.#linked;
    this.#buffer = '';
    this.#linked = 0;
    const plain = this.#pre ? raw.replace(/^\s*\n|\s+$/g, '') : collapseLines(raw);
    if (plain.trim() === '') return;
    const { kind, text } = this.#write(plain, linked);
    if (text === '') return;
    this.#blocks.push({ kind, text, plain, linked, region: this.region });
    this.#marker = '';
  }

  #write(plain: string, linked: number): { readonly kind: Block['kind']; readonly text: string } {
    if (this.#heading > 0) {
      const named = plain.replaceAll('\n', ' ').replace(PERMALINK, '');
      const title = linked > 0 && linked <= MAX_PERMALINK && linked < named.length ? named.replace(/#$/, '') : named;
      if (isRemark(title)) return { kind: 'paragraph', text: `${title}:` };
      this.#lastHeading = this.#heading;
      return { kind: 'heading', text: title === '' ? '' : `${'#'.repeat(this.#heading)} ${title}` };
    }
    const first = this.#quote + (this.#marker || this.#indent);
    const rest = `\n${this.#quote}${this.#indent}`;
    if (this.#pre) {
      const fence = fenceFor(plain);
      const lines = `${fence}\n${plain}\n${fence}`;
      return { kind: 'code', text: first + (rest === '\n' ? lines : lines.replaceAll('\n', rest)) };
    }
    const lines = asText(plain);
    return { kind: this.#indent === '' ? 'paragraph' : 'item', text: first + lines.replaceAll('\n', rest) };
  }

  blocks(): readonly Block[] {
    this.endBlock();
    return this.#blocks;
  }
}

export function collapse(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function collapseLines(text: string): string {
  if (!text.includes(LINE_BREAK)) return collapse(text);
  return text.split(LINE_BREAK).map(collapse).join('\n').trim();
}

function fenceFor(code: string): string {
  let longest = 2;
  for (const [run] of code.matchAll(/`{3,}/g)) longest = Math.max(longest, run.length);
  return '`'.repeat(Math.min(longest + 1, 20));
}
