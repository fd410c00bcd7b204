import type { Block } from './blocks.ts';
import { tableOf } from './markdown.ts';

/** Cells beyond these are read as text. */
const MAX_CELLS = 20_000;
const MAX_SPAN = 20;
/** Characters of a cell. Tables with longer ones are layout. */
const MAX_CELL = 600;

interface Cell {
  readonly blocks: Block[];
  readonly isHeader: boolean;
  readonly columns: number;
  readonly rows: number;
}

/** A table while it is read. */
export class MarkdownTable {
  readonly #rows: Cell[][] = [];
  #cells = 0;
  #isLayout: boolean;

  constructor(isLayout: boolean) {
    this.#isLayout = isLayout;
  }

  startRow(): void {
    this.#rows.push([]);
  }

  /** @returns where to put the blocks of the cell; null: there are too many cells */
  startCell(isHeader: boolean, columns: string | undefined, rows: string | undefined): Block[] | null {
    if (this.#cells >= MAX_CELLS) return null;
    this.#cells += 1;
    if (this.#rows.length === 0) this.startRow();
    const cell: Cell = { blocks: [], isHeader, columns: spanOf(columns), rows: spanOf(rows) };
    this.#rows.at(-1)!.push(cell);
    return cell.blocks;
  }

  /** The table holds another one, or more than text. */
  markAsLayout(): void {
    this.#isLayout = true;
  }

  /** @returns the Markdown of the table; null: its cells arrange other content */
  markdown(): string | null {
    const rows = this.#rows.filter((row) => row.length > 0);
    if (this.#isLayout || rows.length < 2 || Math.max(...widths(rows)) < 2) return null;
    if (rows.some((row) => row.some((cell) => !isText(cell)))) return null;
    const grid = gridOf(rows);
    const header = rows[0]!.every((cell) => cell.isHeader) ? grid.shift()! : [];
    return tableOf(header, grid);
  }

  blocks(): Block[] {
    return this.#rows.flatMap((row) => row.flatMap((cell) => cell.blocks));
  }
}

function spanOf(value: string | undefined): number {
  const span = value === undefined ? 1 : Number.parseInt(value, 10);
  return span >= 1 ? Math.min(span, MAX_SPAN) : 1;
}

/** Of a table, to measure its columns. */
const MAX_ROWS = 100;

function widths(rows: readonly (readonly Cell[])[]): number[] {
  return rows.slice(0, MAX_ROWS).map((row) => row.reduce((sum, cell) => sum + cell.columns, 0));
}

function isText({ blocks }: Cell): boolean {
  let length = 0;
  for (const { kind, plain } of blocks) {
    if (kind === 'heading' || kind === 'table') return false;
    length += plain.length;
  }
  return length <= MAX_CELL;
}

/** Text by row and column. A cell that spans rows is repeated in each. */
function gridOf(rows: readonly (readonly Cell[])[]): string[][] {
  const spanning = new Map<number, { text: string; rows: number }>();
  return rows.map((row) => {
    const texts: string[] = [];
    const fillSpanning = (): void => {
      for (let above = spanning.get(texts.length); above !== undefined; above = spanning.get(texts.length)) {
        above.rows -= 1;
        if (above.rows === 0) spanning.delete(texts.length);
        texts.push(above.text);
      }
    };
    for (const cell of row) {
      fillSpanning();
      const text = cell.blocks.map(({ plain }) => plain).join(' ');
      if (cell.rows > 1) spanning.set(texts.length, { text, rows: cell.rows - 1 });
      texts.push(text, ...Array.from<string>({ length: cell.columns - 1 }).fill(''));
    }
    fillSpanning();
    return texts;
  });
}
