/** What models are asked for a report, and what of their answers makes one: every family of endpoints, and silent ones. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import type { Finding } from '#libs/features/knowledge/index.ts';
import { askModel } from '#libs/features/reports/model-report.ts';
import { ModelTexts } from '#libs/features/reports/model-texts.ts';
import { type ModelLimits, openAICompatibleModel } from '#libs/platform/model/index.ts';
import { createMetrics } from '#libs/platform/telemetry/index.ts';
import { beginEvents, chunk, type Endpoints, startEndpoints } from '#test/support/endpoints/endpoint.ts';
import { FAMILIES } from '#test/support/endpoints/families.ts';

const texts = new ModelTexts();
let endpoints: Endpoints;

beforeAll(async () => {
  endpoints = await startEndpoints(FAMILIES);
});
afterAll(async () => {
  await endpoints?.stop();
  await texts.close();
});

const passage = (index: number, text: string): Finding => ({
  graphId: 'g',
  uuid: `${index}`,
  name: `Part ${index}`,
  labels: ['Section'],
  summary: null,
  edge: null,
  sources: [{ documentId: 'd', name: 'Handbook', url: null, passage: text }],
  hop: 0,
});
const plan = {
  graphs: [{ id: 'g', name: 'Company' }],
  questions: ['warehouse'],
  terms: [{ word: 'warehouse', weight: 2, found: 'exact' as const, correction: null }],
};

async function asked(name: string, findings: Finding[], limits: ModelLimits = {}, maxTokens = 24_000) {
  const model = openAICompatibleModel({
    baseUrl: endpoints.baseUrl,
    name,
    limits,
    metrics: createMetrics({ processMetrics: false }),
  });
  try {
    const given = { model, maxTokens, texts, organizationId: 'o' };
    const query = 'When does the warehouse open?';
    return await askModel({ query, plan, findings }, given, new AbortController().signal);
  } finally {
    await model.close();
  }
}

const opens = passage(1, 'The warehouse opens at nine.');

it.each(FAMILIES.map(({ name }) => [name]))('%s takes the request, and its answer is a report', async (family) => {
  endpoints.script(`${family}/r`, { reasoning: ['Hm.'], text: ['It opens ', 'at nine [1].'] });
  const { results, failure } = await asked(`${family}/r`, [opens]);
  expect({ failure, results }).toMatchObject({
    failure: null,
    results: expect.stringContaining('It opens at nine [1].'),
  });
});

describe('a model that is late', () => {
  it.each([
    ['begins', { firstPartMs: 300 }, 0, 'the model did not begin to answer in time'],
    ['continues', { idleMs: 300 }, 1, 'the model stopped in the middle of its answer'],
    ['ends', { totalMs: 1_000 }, Infinity, 'the model did not finish its answer in time'],
  ])('when it %s has written no report', async (_what, limits, count, reason) => {
    endpoints.script('openai/late', async (response) => {
      if (count > 0) beginEvents(response);
      for (let sent = 0; sent < count && !response.destroyed; sent += 1) {
        response.write(chunk('openai/late', { content: 'It opens at nine [1]. ' }));
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    expect(await asked('openai/late', [opens], limits)).toMatchObject({ results: '', failure: { reason } });
  });
});

describe('what a model is given', () => {
  const shown = (): { number: number; text?: string; facts?: string[] }[] => {
    const text = String(endpoints.requests('openai/given').at(-1)?.messages.at(-1)?.content);
    return JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)).sources;
  };
  const ask = async (findings: Finding[], maxTokens?: number) => {
    endpoints.script('openai/given', { text: ['It opens at nine [2] [1].'] });
    const answer = await asked('openai/given', findings, {}, maxTokens);
    return { ...answer, shown: shown() };
  };

  it('fits its context, the most relevant first, and what is cited has the numbers of the report', async () => {
    const findings = Array.from({ length: 60 }, (_, index) =>
      passage(index, `Text ${index} ${`w${index} `.repeat(300)}.`),
    );
    const best = passage(99, 'The warehouse opens at nine.');
    const answer = await ask([...findings, best], 4_000);
    expect(answer.shown[0]).toMatchObject({ number: 1, text: 'The warehouse opens at nine.' });
    expect(answer.shown.length).toBeGreaterThan(3);
    expect(answer.shown.length).toBeLessThan(30);
    expect(answer.results).toContain('It opens at nine [1] [2].');
    expect(answer.results).toMatch(
      /1\. \*\*Handbook\*\*, Part \d+: Text [^]*2\. \*\*Handbook\*\*, Part 99: The warehouse/,
    );
  });

  it('is the beginning of one source at least', async () => {
    const { shown: given } = await ask([passage(1, 'The warehouse opens. '.repeat(70))], 500);
    expect(given).toHaveLength(1);
    expect(given[0]?.text?.length).toBeGreaterThan(200);
  });

  it('has the facts of a document with its passage, and statements of callers as one source', async () => {
    const edge = (fact: string, sources: Finding['sources']): Finding => ({
      ...opens,
      uuid: fact,
      labels: [],
      edge: { fact, name: null, target: '' },
      sources,
    });
    const facts = [
      edge('Ada runs the warehouse', []),
      edge('Ada likes it', []),
      edge('It is in Bremen', opens.sources),
    ];
    const { shown: given, results } = await ask([opens, ...facts]);
    expect(given).toMatchObject([
      { number: 1, text: 'The warehouse opens at nine.', facts: ['It is in Bremen'] },
      { number: 2, facts: ['Ada runs the warehouse', 'Ada likes it'] },
    ]);
    expect(results).toContain('1. A caller\'s statement in the graph "Company"');
  });
});
