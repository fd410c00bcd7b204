/** Checks the log of crawls, their documents and what graphs learnt; it never queries the system. */
import type { LogEvent } from './log-reader.ts';

const PAGES = new Set(['PagesVisited.v1', 'PagesCrawled.v1']);
const ENDS = new Set(['CrawlCompleted.v1', 'CrawlFailed.v1', 'CrawlCancelled.v1']);

/** One line per disagreement; empty when all is well. */
export function crawlProblems(log: readonly LogEvent[]): string[] {
  const streams = Map.groupBy(log, ({ stream }) => stream);
  const facts = log
    .filter(({ type }) => type === 'FactsLearned.v1')
    .map(({ stream, data }) => JSON.stringify([stream, data]));
  return [
    ...[...streams].flatMap(([stream, events]) => [
      ...(stream.startsWith('crawl-') ? problemsOfCrawl(stream, events) : []),
      ...(stream.startsWith('document-') ? problemsOfDocument(stream, events) : []),
    ]),
    ...repeated(facts).map((fact) => `learnt twice: ${fact.slice(0, 200)}`),
  ];
}

export function isEnd({ type }: LogEvent): boolean {
  return ENDS.has(type);
}

function problemsOfCrawl(stream: string, events: readonly LogEvent[]): string[] {
  const problems: string[] = [];
  const ends = events.filter(isEnd);
  if (ends.length !== 1) problems.push(`${stream} has ended ${ends.length} times`);
  if (ends.some(({ type }) => type !== 'CrawlCompleted.v1')) problems.push(`${stream} has not completed`);
  const pages = events.flatMap(({ type, data }) =>
    PAGES.has(type) ? (data['pages'] as readonly { url: string; documentId: string }[]) : [],
  );
  problems.push(...repeated(pages.map(({ url }) => url)).map((url) => `${stream} has the page ${url} twice`));
  const ids = pages.map(({ documentId }) => documentId);
  return [...problems, ...repeated(ids).map((id) => `${stream} has the document ${id} twice`)];
}

function problemsOfDocument(stream: string, events: readonly LogEvent[]): string[] {
  return ['DocumentCreated.v1', 'DocumentIngested.v1'].flatMap((type) => {
    const count = events.filter((event) => event.type === type).length;
    return count === 1 ? [] : [`${stream} has ${count} of ${type}`];
  });
}

function repeated(values: readonly string[]): string[] {
  return [...Map.groupBy(values, (value) => value)].filter(([, group]) => group.length > 1).map(([value]) => value);
}
