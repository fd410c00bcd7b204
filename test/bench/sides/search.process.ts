/** One engine on one collection: how good its answers are, and how long they take. */
import { derivedId } from '#libs/kernel/ids.ts';
import type { FactsLearned } from '#libs/features/knowledge/graph.ts';

import { answerTasks } from '../child-process.ts';
import type { SearchAnswer, SearchTask } from '../search.benchmark.ts';
import { type Collection, type JudgedQuestion, readCollection } from '../search/collections.ts';
import { type Engine, openBm25s, openFts5, openMiniSearch, openParley } from '../search/engines.ts';
import { openParleyWithVectors } from '../search/with-vectors.ts';
import { percentile } from '../statistics.ts';

const RESULTS = 10;
/** Documents may have several nodes: for the first ten documents, more results are asked for. */
const JUDGED_RESULTS = 50;
const ROUNDS = 5;
/** A slow engine answers fewer rounds, but the questions at least once after the round that does not count. */
const MAX_DURATIONS_MS = 20_000;
const NAMESPACE = '2d0f7c3a-7b0e-4a57-9d0c-0d8f3b6e5a11';

answerTasks<SearchTask, SearchAnswer>(async (task) => {
  const collection = readCollection(task.collection);
  const figures: Record<string, number> = {};
  if (task.isJudged) {
    const engine = await opened(task, collection);
    Object.assign(figures, relevanceOf(engine, collection.questions));
    engine.close();
  }
  for (const size of task.sizes) {
    const engine = await opened(task, { ...collection, documents: ofSize(collection.documents, size) });
    const durations = durationsOf(engine, collection.questions);
    figures[`p50 at ${size}`] = percentile(durations, 0.5);
    figures[`p99 at ${size}`] = percentile(durations, 0.99);
    engine.close();
  }
  return figures;
});

async function opened({ engine, python }: SearchTask, { documents, questions }: Collection): Promise<Engine> {
  if (engine === 'minisearch') return openMiniSearch(documents);
  if (engine === 'fts5') return openFts5(documents);
  if (engine === 'bm25s') return openBm25s(documents, { python, questions, limit: JUDGED_RESULTS });
  if (engine === 'parley with wordllama') return openParleyWithVectors(documents, { python, questions });
  return openParley(documents);
}

/** Repeats the documents, as others with the same text, up to a number of nodes. */
function ofSize(documents: readonly FactsLearned[], size: number): FactsLearned[] {
  const sized: FactsLearned[] = [];
  for (let count = 0, copy = 0; count < size; copy++) {
    for (const document of documents) {
      const nodes = document.nodes
        .slice(0, size - count)
        .map((node) => ({ ...node, id: derivedId(NAMESPACE, `${copy} ${node.id}`) }));
      const source = document.source && { ...document.source, documentId: `${copy}/${document.source.documentId}` };
      if (nodes.length > 0) sized.push({ ...document, source, nodes });
      count += nodes.length;
    }
  }
  return sized;
}

/** Recall: the part of the questions with a right document among the first ten. */
function relevanceOf(engine: Engine, questions: readonly JudgedQuestion[]): SearchAnswer {
  const answers = questions.map(({ question, gains }) => ({
    found: engine.ask(question, JUDGED_RESULTS).slice(0, 10),
    gains,
  }));
  const ranks = answers.map(({ found, gains }) => found.findIndex((document) => gains.has(document)) + 1);
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    nDCG: mean(answers.map(({ found, gains }) => gainOf(found.map((id) => gains.get(id) ?? 0)) / bestGain(gains))),
    'recall at 10': mean(ranks.map((rank) => (rank > 0 ? 1 : 0))),
    'reciprocal rank': mean(ranks.map((rank) => (rank > 0 ? 1 / rank : 0))),
    'in the first 3': ranks.filter((rank) => rank > 0 && rank <= 3).length,
  };
}

function bestGain(gains: ReadonlyMap<string, number>): number {
  return gainOf([...gains.values()].toSorted((one, other) => other - one).slice(0, 10));
}

/** Discounted by their places. */
function gainOf(gains: readonly number[]): number {
  return gains.reduce((sum, gain, place) => sum + gain / Math.log2(place + 2), 0);
}

/** In milliseconds, after a round that does not count. */
function durationsOf(engine: Engine, questions: readonly JudgedQuestion[]): number[] {
  const durations: number[] = [];
  const endMs = performance.now() + MAX_DURATIONS_MS;
  for (let round = 0; round <= ROUNDS && (round < 2 || performance.now() < endMs); round++) {
    for (const { question } of questions) {
      const startedMs = performance.now();
      engine.ask(question, RESULTS);
      if (round > 0) durations.push(performance.now() - startedMs);
    }
  }
  return durations;
}
