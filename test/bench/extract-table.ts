/** `npm run bench -- extract --data <folder>`: quality and time of the extraction of main content, by type of page. */
import { askOnce } from './child-process.ts';

export interface ExtractTask {
  /** With `html/<id>.html.gz` and `ground-truth/<id>.json`, as WCXB has them. */
  readonly folder: string;
}

export interface ReaderScore {
  readonly reader: string;
  readonly type: string;
  readonly f1: number;
  readonly precision: number;
  readonly recall: number;
  readonly ms: number;
}

export interface ExtractAnswer {
  readonly scores: readonly ReaderScore[];
}

/** Prints a table in Markdown. */
export async function printExtractTable(folder: string): Promise<void> {
  const { scores } = await askOnce<ExtractAnswer>('sides/extract.process.ts', { folder } satisfies ExtractTask);
  const rows = [...Map.groupBy(scores, ({ type }) => type), ['all', scores] as const];
  console.log('| type | pages | F1 | precision | recall | ms a page | Readability F1 | ms a page |');
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const [type, own] of rows) {
    const of = (reader: string, figure: 'f1' | 'precision' | 'recall' | 'ms') =>
      meanOf(own.filter((score) => score.reader === reader).map((score) => score[figure]));
    const quality = (['f1', 'precision', 'recall'] as const).map((figure) => of('parley', figure).toFixed(3));
    const other = [of('readability', 'f1').toFixed(3), of('readability', 'ms').toFixed(1)];
    const cells = [type, own.length / 2, ...quality, of('parley', 'ms').toFixed(1), ...other];
    console.log(`| ${cells.join(' | ')} |`);
  }
}

function meanOf(figures: readonly number[]): number {
  return figures.reduce((sum, figure) => sum + figure, 0) / figures.length;
}
