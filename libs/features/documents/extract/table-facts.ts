import type { FactCollector } from './fact-collector.ts';
import { isGeneric } from './generic-headings.ts';
import type { MarkdownBlock, TableRow } from './markdown.ts';
import type { Section } from './section-facts.ts';
import { addValue, keyOf } from './value-facts.ts';

const MAX_COLUMNS = 50;
const NUMBERING = /^(?:#|№|no\.?|nr\.?|id|n°)?$/i;

type Table = Extract<MarkdownBlock, { kind: 'table' }>;

/** Rows of tables with a header row: a node for each, named by its first column, and its other columns as facts. */
export function addTables(facts: FactCollector, section: Section): void {
  let number = 0;
  for (const block of section.blocks) {
    if (block.kind !== 'table' || section.key === null) continue;
    number += 1;
    addTable(facts, section, block, `${section.key}:table:${number}`);
  }
}

function addTable(facts: FactCollector, section: Section, { header, rows }: Table, key: string): void {
  if (header.filter((name) => name !== '').length < 2) return;
  const naming = namingColumn(header, rows);
  const occurrences = new Map<string, number>();
  for (const { cells, line, offset } of rows) {
    const name = cells[naming] ?? '';
    if (name === '' || name.length > 200) continue;
    const occurrence = occurrences.get(keyOf(name)) ?? 0;
    occurrences.set(keyOf(name), occurrence + 1);
    const columns = header
      .slice(0, MAX_COLUMNS)
      .map((column, index) => ({ column, value: cells[index] ?? '' }))
      .filter(({ column, value }, index) => index > naming && column !== '' && value !== '');
    const passage = facts.addLine(line);
    const row = facts.addNode({
      key: `${key}:${keyOf(name)}:${occurrence}`,
      name,
      summary: [...columns.map(({ column, value }) => `${column}: ${value}`), section.name].join('; '),
      labels: [labelOf(header[naming] ?? '')],
      offset,
      passage,
    });
    for (const { column, value } of columns) {
      addValue(facts, { source: row, subject: `${name} (${section.name})`, name: column }, value, { offset, passage });
    }
  }
}

/** The first column, unless that only numbers the rows. */
function namingColumn(header: readonly string[], rows: readonly TableRow[]): number {
  const isNumbered = NUMBERING.test(header[0] ?? '') && rows.every(({ cells }) => /^\d*\.?$/.test(cells[0] ?? ''));
  return isNumbered ? 1 : 0;
}

function labelOf(column: string): string {
  return column.length > 40 || isGeneric(column.toLowerCase()) ? 'Row' : column;
}
