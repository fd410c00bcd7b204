/** Tables, JSON, and progress bars. */
import { SingleBar } from 'cli-progress';

export type Row = Readonly<Record<string, unknown>>;

/** Left-aligned columns, two spaces apart. */
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

/** Writes each member of a row in a line. */
export function details(row: Row): string {
  const longest = Math.max(...Object.keys(row).map((name) => name.length));
  return Object.entries(row)
    .map(([name, value]) => `${name.padEnd(longest)}  ${cell(value)}\n`)
    .join('');
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

export function cell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (Array.isArray(value)) return value.map(cell).join(',');
  if (typeof value === 'object') return Object.values(value).map(cell).join(' ');
  // Names chosen by other users must not control the terminal.
  return String(value).replace(/\p{Cc}/gu, '\u{FFFD}');
}

/** Width in code points, as terminals show most of them. */
function width(text: string): number {
  return [...text].length;
}

function pad(text: string, to: number): string {
  return text + ' '.repeat(Math.max(0, to - width(text)));
}

export interface ProgressBar {
  /** @param fraction 0 to 1 */
  update(fraction: number, values: Readonly<Record<string, unknown>>): void;
  stop(): void;
}

/** A progress bar; without a terminal it shows nothing. @param initial the values that the format names */
export function progressBar(terminal: NodeJS.WriteStream | undefined, format: string, initial: object): ProgressBar {
  if (terminal === undefined) return { update: () => undefined, stop: () => undefined };
  const bar = new SingleBar({ format, stream: terminal, hideCursor: true, barsize: 30, clearOnComplete: false });
  bar.start(1_000, 0, initial);
  return { update: (fraction, values) => bar.update(Math.round(fraction * 1_000), values), stop: () => bar.stop() };
}

/** Units per second since `startedAtMs`, by `performance.now()`. */
export function rateSince(startedAtMs: number, units: number): number {
  return Math.round((units * 1_000) / Math.max(1, performance.now() - startedAtMs));
}
