import type { BenchmarkResult, RowResult } from './run.ts';

const HEAD = ['name', 'row', 'ours', 'against', 'theirs', 'unit', 'ratio', 'goal', 'met'];

/** The results as a table in Markdown, as docs/performance.md has it; remarks follow it. */
export function renderTable(results: readonly BenchmarkResult[]): string {
  const lines = [HEAD, ...results.flatMap(({ name, rows }) => rows.map((row) => cells(name, row)))];
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const render = (line: readonly string[]) =>
    `| ${widths.map((width, n) => (line[n] ?? '').padEnd(width)).join(' | ')} |`;
  const [head = HEAD, ...body] = lines;
  const rule = widths.map((width) => '-'.repeat(width));
  const remarks = results.flatMap(({ name, remarks }) => remarks.map((remark) => `  ${name}: ${remark}`));
  return [
    render(head),
    render(rule),
    ...body.map(render),
    ...(remarks.length > 0 ? ['', 'Remarks', ...remarks] : []),
  ].join('\n');
}

function cells(name: string, { row, ours, theirs, ratio, lowest, highest, met }: RowResult): string[] {
  const { goal } = row;
  // A quick run leaves out large sizes, and a machine may lack what a row needs: the remarks say so.
  if (Number.isNaN(ratio))
    return [`\`${name}\``, row.title, Number.isNaN(ours) ? '' : figure(ours), row.theirs, 'not measured'];
  const range = lowest === highest ? '' : ` (${lowest.toFixed(2)}-${highest.toFixed(2)})`;
  return [
    `\`${name}\``,
    row.title,
    figure(ours),
    row.theirs,
    figure(theirs),
    row.unit,
    `${ratio.toFixed(2)}${range}`,
    goal === undefined ? '' : 'atLeast' in goal ? `>= ${goal.atLeast}` : `<= ${goal.atMost}`,
    met === null ? '' : met ? 'yes' : 'no',
  ];
}

function figure(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}
