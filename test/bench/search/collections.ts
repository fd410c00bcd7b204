/** What search is judged by: documents as graphs learn them, and questions with the documents that answer them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { extractFacts } from '#libs/features/documents/extract/facts.ts';
import { readPage } from '#libs/features/documents/extract/page.ts';
import type { FactsLearned } from '#libs/features/knowledge/graph.ts';
import { derivedId } from '#libs/kernel/ids.ts';

import postgresqlManual from './postgresql-manual.json' with { type: 'json' };
import pythonLibrary from './python-library.json' with { type: 'json' };

export const MANUALS = { 'PostgreSQL manual': postgresqlManual, 'Python library': pythonLibrary };
export type ManualName = keyof typeof MANUALS;

/** Names a collection to the process that reads it. */
export type CollectionName = { readonly manual: ManualName; readonly root: string } | { readonly cranfield: string };

export interface JudgedQuestion {
  readonly question: string;
  /** Gains of the documents that answer it, by their ids. */
  readonly gains: ReadonlyMap<string, number>;
}

export interface Collection {
  readonly documents: readonly FactsLearned[];
  readonly questions: readonly JudgedQuestion[];
}

const NAMESPACE = '2d0f7c3a-7b0e-4a57-9d0c-0d8f3b6e5a11';

export function readCollection(name: CollectionName): Collection {
  return 'cranfield' in name ? readCranfield(name.cranfield) : readManual(name);
}

/** @param root folder that the manual's package is unpacked to; `/` for an installed one */
function readManual({ manual, root }: { readonly manual: ManualName; readonly root: string }): Collection {
  const { folder, leftOut, questions } = MANUALS[manual];
  const files = readdirSync(join(root, folder)).filter((file) => file.endsWith('.html') && !leftOut.includes(file));
  return {
    documents: files.map((file) => {
      const url = `http://docs.example/${file}`;
      const page = readPage(readFileSync(join(root, folder, file)), { url, contentType: 'text/html' });
      const { title, text, structured } = page;
      return learned({ documentId: file, name: title ?? file, url, contentType: 'text/markdown', text, structured });
    }),
    questions: questions.map(({ question, pages }) => ({ question, gains: new Map(pages.map((page) => [page, 1])) })),
  };
}

/** The facts of a document as its graph learns them. */
function learned(content: Parameters<typeof extractFacts>[0]): FactsLearned {
  const { documentId, name, url } = content;
  const { passages, nodes } = extractFacts(content);
  return {
    source: { documentId, revision: 0, name, url },
    passages: [...passages],
    nodes: nodes.map(({ key, ...node }) => ({ ...node, labels: [...node.labels], id: derivedId(NAMESPACE, key) })),
    edges: [],
    model: null,
  };
}

/** Whether a folder has the Cranfield collection. */
export function hasCranfield(folder: string): boolean {
  return ['cran.all.1400', 'cran.qry', 'cranqrel'].every((file) => existsSync(join(folder, file)));
}

/** Questions are numbered by their position; grade 1 is the best, 3 the least, others do not count as relevant. */
function readCranfield(folder: string): Collection {
  const records = (file: string) =>
    readFileSync(join(folder, file), 'utf8')
      .replaceAll('\r\n', '\n')
      .split(/^\.I \d+\s*$/m)
      .slice(1);
  const part = (record: string, letter: string) =>
    new RegExp(`^\\.${letter}\\n([^]*?)(?=^\\.[A-Z]\\s*$|(?![^]))`, 'm').exec(record)?.[1]?.trim() ?? '';
  const gains = new Map<number, Map<string, number>>();
  for (const line of readFileSync(join(folder, 'cranqrel'), 'utf8').split('\n')) {
    const [question = 0, document = 0, grade = 0] = line.trim().split(/\s+/).map(Number);
    if (!(grade >= 1 && grade <= 3)) continue;
    const known = gains.get(question) ?? new Map<string, number>();
    gains.set(question, known.set(String(document), 4 - grade));
  }
  return {
    documents: records('cran.all.1400').map((record, at) => {
      const content = { documentId: String(at + 1), name: part(record, 'T').replace(/\s+/g, ' ') || `${at + 1}` };
      return learned({ ...content, url: null, contentType: 'text/plain', text: part(record, 'W') });
    }),
    questions: records('cran.qry').flatMap((record, at) => {
      const relevant = gains.get(at + 1);
      return relevant === undefined ? [] : [{ question: part(record, 'W').replace(/\s+/g, ' '), gains: relevant }];
    }),
  };
}
