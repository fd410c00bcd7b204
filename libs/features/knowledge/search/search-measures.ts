import type { Logger } from 'pino';

import type { Metrics } from '#libs/platform/telemetry/index.ts';
import type { OpenMeasures } from '#libs/platform/textindex/index.ts';

export interface SearchPlatform {
  readonly metrics: Metrics;
  readonly log: Logger;
}

export interface SearchMeasures {
  /** Counts and times a query. */
  query<T>(answer: Promise<T>): Promise<T>;
  applied(events: number): void;
  rebuilt(): void;
  ranked(ranking: string): void;
}

export function searchMeasures(metrics: Metrics, open: () => readonly OpenMeasures[]): SearchMeasures {
  const queries = metrics.counter('search_queries_total', 'Queries of knowledge graphs, by their outcome', ['outcome']);
  const seconds = metrics.counter(
    'search_query_seconds_total',
    'Time that queries took together, with the wait for their indexes',
  );
  const events = metrics.counter('search_applied_events_total', 'Events that search indexes were caught up with');
  const rebuilds = metrics.counter('search_rebuilds_total', 'Search indexes that were damaged or of another version');
  const rankings = metrics.counter('search_rankings_total', 'Answered queries, by what ranked their results', [
    'ranking',
  ]);
  const sumOf = (measure: keyof OpenMeasures) => () => open().reduce((sum, one) => sum + one[measure], 0);
  metrics.observedGauge('search_open_indexes', 'Search indexes that this process has open', sumOf('count'));
  metrics.observedGauge('search_index_memory_bytes', 'Memory of the open search indexes', sumOf('bytes'));
  return {
    async query(answer) {
      const startedMs = performance.now();
      try {
        const result = await answer;
        queries.add({ outcome: 'answered' });
        return result;
      } catch (error) {
        queries.add({ outcome: 'failed' });
        throw error;
      } finally {
        seconds.add({}, (performance.now() - startedMs) / 1_000);
      }
    },
    applied: (count) => events.add({}, count),
    rebuilt: () => rebuilds.add(),
    ranked: (ranking) => rankings.add({ ranking }),
  };
}
