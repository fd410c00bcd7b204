/** `npm run bench -- extract --data <folder>`: quality and time of the extraction of main content, by type of page. */
import { startChild } from './child-process.ts';

const READERS = ['parley', 'readability'] as const;
export type ReaderName = (typeof READERS)[number];

/** The first task opens the collection, and is answered with the number of pages; the others read one of them. */
export type ExtractTask =
  | {
      readonly reader: ReaderName;
      /** With `html/<id>.html.gz` and `ground-truth/<id>.json`, as WCXB has them. */
      readonly folder: string;
    }
  | { readonly page: number };

export interface ReaderScore {
  readonly reader: ReaderName;
  readonly type: string;
  readonly f1: number;
  readonly precision: number;
  readonly recall: number;
  readonly ms: number;
}

/** Prints a table in Markdown. */
export async function printExtractTable(folder: string): Promise<void> {
  const scores = await scoresOf(folder);
  const rows = [...Map.groupBy(scores, ({ type }) => type), ['all', scores] as const];
  console.log('| type | pages | F1 | precision | recall | ms a page | Readability F1 | ms a page |');
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const [type, own] of rows) {
    const of = (reader: ReaderName, figure: 'f1' | 'precision' | 'recall' | 'ms') =>
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

/**
 * Each reader has a process of its own, as its garbage would otherwise be collected in the other's time; they take turns
 * at each page, so that their times met the same noise.
 */
async function scoresOf(folder: string): Promise<readonly ReaderScore[]> {
  const children = READERS.map((reader) => ({ reader, child: startChild('sides/extract.process.ts') }));
  const ask = <Answer>(at: number, task: ExtractTask) => children[at]!.child.ask<Answer>(task);
  try {
    const opened = children.map(({ reader }, at) => ask<{ readonly pages: number }>(at, { reader, folder }));
    const [{ pages }] = (await Promise.all(opened)) as [{ readonly pages: number }];
    const scores: ReaderScore[] = [];
    for (let page = 0; page < pages; page += 1)
      for (const at of page % 2 === 0 ? [0, 1] : [1, 0]) scores.push(await ask<ReaderScore>(at, { page }));
    return scores;
  } finally {
    await Promise.all(children.map(({ child }) => child.stop()));
  }
}
