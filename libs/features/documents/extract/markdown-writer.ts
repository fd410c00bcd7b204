import { BODY_REGION, type Block, type Region } from './blocks.ts';
import { isRemark } from './generic-headings.ts';
import { asText, codeOf, headingOf } from './markdown.ts';
import { MarkdownTable } from './markdown-table.ts';
import { withoutInvisible } from './plain-text.ts';

const LINE_BREAK = '\u0001';
/** Signs that link headings to themselves. A final `#` without a space belongs to the name: C#. */
const PERMALINK = /(?:\s*[¶§🔗]|\s#)\s*$/u;
/** Characters of a heading that its link to itself may have. */
const MAX_PERMALINK = 2;

/** Properties of an element that hold for its text, and for the elements within it that do not say otherwise. */
interface Surroundings {
  /** Where blocks are written: the document, or a cell. */
  readonly blocks: Block[];
  readonly table: MarkdownTable | null;
  readonly indent: string;
  readonly quote: string;
  readonly definitionLists: number;
}

/** Turns text and the starts and ends of blocks into Markdown. Functions that begin an element return the one that ends it. */
export class MarkdownWriter {
  region: Region = BODY_REGION;
  #within: Surroundings = {
    blocks: [],
    table: null,
    indent: '',
    quote: '',
    definitionLists: 0,
  };
  /** Text of the current block. */
  #buffer = '';
  #linked = 0;
  /** Level of the heading that is being written; 0 for other text. An inner heading ends the outer one, whose end tag is missing. */
  #heading = 0;
  /** Likewise: an inner element with preformatted text ends the outer one. */
  #isPre = false;
  #lastHeading = 0;
  /** Written before the first block of a list item, once. */
  #marker = '';
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
    this.#buffer += this.#isPre ? '\n' : LINE_BREAK;
  }

  /** @returns text of the current block from `start` on, as `inLine` shows it; empty when another block has begun */
  since(start: number): string {
    return this.#buffer.slice(start);
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
    this.#isPre = true;
    return () => {
      this.endBlock();
      this.#isPre = false;
    };
  }

  quote(): () => void {
    const { quote } = this.#within;
    return this.#begin({ quote: quote.length < 8 ? `${quote}> ` : quote });
  }

  /** @param marker `- ` or `3. ` */
  item(marker: string, maxIndent = 20): () => void {
    const { indent } = this.#within;
    const first = (indent.length < 20 ? indent : '') + marker;
    const end = this.#begin({ indent: ' '.repeat(Math.min(maxIndent, first.length)) });
    this.#marker = first;
    return () => {
      end();
      this.#marker = '';
    };
  }

  definitions(): () => void {
    const end = this.#begin({ definitionLists: this.#within.definitionLists + 1 });
    return () => {
      this.#endTerm();
      end();
    };
  }

  /** @param isSection a term that is linked to has its definition under a heading, else in a line `- term: definition` */
  term(isSection: boolean): () => void {
    return isSection ? this.#termAsHeading() : this.#termBeforeDefinition();
  }

  #termAsHeading(): () => void {
    this.#endTerm();
    const above = this.#lastHeading;
    const end = this.#begin({ indent: '' });
    const endHeading = this.heading(Math.min(6, Math.max(1, above) + this.#within.definitionLists));
    return () => {
      endHeading();
      end();
      // Terms of one list are headings of one level.
      this.#lastHeading = above;
    };
  }

  #termBeforeDefinition(): () => void {
    this.endBlock();
    return () => {
      const term = collapse(this.#buffer.replaceAll(LINE_BREAK, ' ')).replace(/\s*:$/, '');
      this.#buffer = '';
      this.#linked = 0;
      this.#term = this.#term === '' ? term : `${this.#term}, ${term}`;
    };
  }

  definition(): () => void {
    const term = this.#term;
    this.#term = '';
    return term === '' ? this.#begin({}) : this.item(`- ${term}: `, 2);
  }

  /** Writes a term that has no definition. */
  #endTerm(): void {
    this.endBlock();
    this.#buffer = this.#term;
    this.#term = '';
    this.endBlock();
  }

  table(isLayout: boolean): () => void {
    this.#within.table?.markAsLayout();
    const table = new MarkdownTable(isLayout);
    const { region } = this;
    const end = this.#begin({ table });
    return () => {
      end();
      this.#addTable(table, region);
    };
  }

  #addTable(table: MarkdownTable, region: Region): void {
    const [blocks, text] = [table.blocks(), table.markdown()];
    if (text === null) {
      for (const block of blocks) this.#within.blocks.push(block);
      return;
    }
    const linked = blocks.reduce((sum, block) => sum + block.linked, 0);
    this.#within.blocks.push({ kind: 'table', level: 0, text, plain: text, linked, region });
  }

  row(): void {
    this.endBlock();
    this.#within.table?.startRow();
  }

  cell(isHeader: boolean, columns: string | undefined, rows: string | undefined): (() => void) | null {
    this.endBlock();
    const blocks = this.#within.table?.startCell(isHeader, columns, rows) ?? null;
    return blocks === null ? null : this.#begin({ blocks, indent: '', quote: '' });
  }

  #begin(changed: Partial<Surroundings>): () => void {
    this.endBlock();
    const outer = this.#within;
    this.#within = { ...outer, ...changed };
    return () => {
      this.endBlock();
      this.#within = outer;
    };
  }

  endBlock(): void {
    if (this.#buffer === '') return;
    const [buffer, linked] = [this.#buffer, this.#linked];
    this.#buffer = '';
    this.#linked = 0;
    // Most of what stands between two elements is white space.
    if (buffer.trim() === '') return;
    const raw = withoutInvisible(buffer);
    const plain = this.#isPre ? raw.replace(/^\s*\n|\s+$/g, '') : collapseLines(raw);
    if (plain.trim() === '') return;
    const written = this.#write(plain, linked);
    if (written.text === '') return;
    this.#within.blocks.push({ level: 0, ...written, plain, linked, region: this.region });
    this.#marker = '';
  }

  #write(plain: string, linked: number): Pick<Block, 'kind' | 'text'> & Partial<Pick<Block, 'level'>> {
    const { indent, quote } = this.#within;
    if (this.#heading > 0) {
      const named = plain.replaceAll('\n', ' ').replace(PERMALINK, '');
      const title = linked > 0 && linked <= MAX_PERMALINK && linked < named.length ? named.replace(/#$/, '') : named;
      if (isRemark(title)) return { kind: 'paragraph', text: `${title}:` };
      const level = (this.#lastHeading = this.#heading);
      return { kind: 'heading', level, text: title === '' ? '' : headingOf(level, title) };
    }
    const first = quote + (this.#marker || indent);
    const rest = `\n${quote}${indent}`;
    if (this.#isPre) {
      const lines = codeOf(plain);
      return { kind: 'code', text: first + (rest === '\n' ? lines : lines.replaceAll('\n', rest)) };
    }
    const lines = asText(plain);
    return { kind: indent === '' ? 'paragraph' : 'item', text: first + lines.replaceAll('\n', rest) };
  }

  blocks(): readonly Block[] {
    this.endBlock();
    return this.#within.blocks;
  }
}

export function collapse(text: string): string {
  return text.trim().replace(/\s{2,}|[^\S ]/g, ' ');
}

/** Text of a block in one line, without what readers do not see. */
export function inLine(text: string): string {
  return collapse(withoutInvisible(text).replaceAll(LINE_BREAK, ' '));
}

function collapseLines(text: string): string {
  if (!text.includes(LINE_BREAK)) return collapse(text);
  return text.split(LINE_BREAK).map(collapse).join('\n').trim();
}
