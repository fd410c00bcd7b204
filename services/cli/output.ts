/** Tables for people, JSON for machines. */

export type Row = Readonly<Record<string, unknown>>;

/** Columns left-aligned under their names, two blanks between them. */
export function table(rows: readonly Row[], columns: readonly string[]): string {
  if (rows.length === 0) return '(none)\n';
  const cells = [
    columns.map((name) => name.toUpperCase()),
    ...rows.map((row) => columns.map((name) => cell(row[name]))),
  ];
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => width(line[index] ?? ''))));
  return cells
    .map(
      (line) =>
        `${line
          .map((text, index) => pad(text, widths[index] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

/** One thing: a line for each of its members. */
export function details(row: Row): string {
  const longest = Math.max(...Object.keys(row).map((name) => name.length));
  return Object.entries(row)
    .map(([name, value]) => `${name.padEnd(longest)}  ${cell(value)}\n`)
    .join('');
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (Array.isArray(value)) return value.map(cell).join(',');
  if (typeof value === 'object') return Object.values(value).map(cell).join(' ');
  // A name that somebody else chose must not drive the terminal.
  return String(value).replace(/\p{Cc}/gu, '\u{FFFD}');
}

/** Characters, as a terminal counts most of them. */
function width(text: string): number {
  return [...text].length;
}

function pad(text: string, to: number): string {
  return text + ' '.repeat(Math.max(0, to - width(text)));
}
