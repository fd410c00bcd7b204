import type { BenchmarkResult, RowResult } from './run.ts';

const HEAD = ['row', 'ours', 'against', 'theirs', 'unit', 'ratio', 'lowest-highest', 'goal', 'met'];

/** The results as a table for people; remarks follow it. */
export function renderTable(results: readonly BenchmarkResult[]): string {
  const lines = [HEAD, ...results.flatMap(({ rows }) => rows.map(cells))];
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const render = (line: readonly string[]) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ');
  const [head = HEAD, ...body] = lines;
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  const remarks = results.flatMap(({ name, remarks }) => remarks.map((remark) => `  ${name}: ${remark}`));
  return [render(head), rule, ...body.map(render), ...(remarks.length > 0 ? ['', 'Remarks', ...remarks] : [])].join(
    '\n',
  );
}

function cells({ row, ours, theirs, ratio, lowest, highest, met }: RowResult): string[] {
  const { goal } = row;
  // A quick run leaves out large sizes, and a machine may lack what a row needs: the remarks say so.
  if (Number.isNaN(ratio)) return [row.title, Number.isNaN(ours) ? '' : figure(ours), row.theirs, 'not measured'];
  return [
    row.title,
    figure(ours),
    row.theirs,
    figure(theirs),
    row.unit,
    ratio.toFixed(2),
    `${lowest.toFixed(2)}-${highest.toFixed(2)}`,
    goal === undefined ? '' : 'atLeast' in goal ? `>= ${goal.atLeast}` : `<= ${goal.atMost}`,
    met === null ? '' : met ? 'yes' : 'NO',
  ];
}

function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}
