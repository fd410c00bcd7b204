import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { EmbeddingEndpoint } from '#libs/features/knowledge/search/embedding-endpoint.ts';
import type { FactsLearned } from '#libs/features/knowledge/graph.ts';
import { createFetcher } from '#libs/platform/fetch/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';

import type { JudgedQuestion } from './collections.ts';
import { documentsOf, type Engine, indexOf } from './engines.ts';

const BATCH = 32;
const MIN_SIMILARITY = 0.35;
const GRAPH = 'bench';

/** Parley with the vectors of wordllama, which a process of Python serves: as its endpoint would be used. */
export async function openParleyWithVectors(
  documents: readonly FactsLearned[],
  { python, questions }: { readonly python: string; readonly questions: readonly JudgedQuestion[] },
): Promise<Engine> {
  const server = spawn(python, [join(import.meta.dirname, '../sides/wordllama_server.py')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [port] = (await once(createInterface(server.stdout), 'line')) as [string];
  const metrics = createMetrics({ processMetrics: false });
  const fetcher = createFetcher({ metrics, allowHosts: [{ host: '127.0.0.1', port: Number(port) }] });
  const endpoint = new EmbeddingEndpoint({
    config: {
      baseUrl: `http://127.0.0.1:${port}/v1`,
      apiKey: null,
      model: 'wordllama',
      dimensions: null,
      queryPrefix: '',
      passagePrefix: '',
      minSimilarity: MIN_SIMILARITY,
    },
    fetcher,
    onRequest: () => undefined,
  });
  const folder = mkdtempSync(join(tmpdir(), 'parley-bench-vectors-'));
  const limits = { minSimilarity: MIN_SIMILARITY, maxBytes: 64 * 1024 * 1024 };
  const vectors = { path: join(folder, 'graph.vectors'), ...limits };
  const index = indexOf(documents, join(folder, 'graph.sqlite'), vectors);
  const queries = new Map<string, Float32Array | null>();
  try {
    const { signal } = new AbortController();
    for (let missing = index.missingVectors(BATCH); missing.length > 0; missing = index.missingVectors(BATCH)) {
      const texts = missing.map(({ text }) => text);
      const found = await endpoint.ofTexts(texts, signal);
      index.addVectors(missing.map(({ key }, at) => [key, found[at] ?? null] as const));
    }
    for (const { question } of questions) queries.set(question, await endpoint.ofQuery(GRAPH, question));
  } finally {
    await fetcher.close();
    server.kill();
  }
  return {
    ask: (query, limit) => documentsOf(index, query, { limit, vector: queries.get(query) ?? null }),
    close() {
      index.close();
      rmSync(folder, { recursive: true });
    },
  };
}
