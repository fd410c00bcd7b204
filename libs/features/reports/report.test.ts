import { describe, expect, it } from 'vitest';

import type { Finding, Plan } from '#libs/features/knowledge/index.ts';
import { describeStoredEvents } from '#test/support/event-samples.ts';
import { plan, section, term } from '#test/support/findings.ts';
import { stateAfter } from '#test/support/log-events.ts';

import samples from './report.events.samples.json' with { type: 'json' };
import { decideCancel, quoted, type Report, reportCodec, type ReportEvent, reportFold } from './report.ts';
import { writeReport } from './report.text.ts';

describeStoredEvents('reports', reportCodec, samples, {
  'ReportWritten.v1': { type: 'ReportWritten.v2', data: quoted('# Who runs the warehouse?') },
});

function given(...events: ReportEvent[]): Report {
  const state = stateAfter(reportFold, events);
  if (state === null) throw new Error('these events create nothing');
  return state;
}
const requested: ReportEvent = {
  type: 'ReportRequested.v1',
  data: { id: 'r', query: 'warehouse', knowledgeGraph: null },
};
const planned: ReportEvent = { type: 'ResearchPlanned.v1', data: plan(term('warehouse')) };
const searched: ReportEvent = { type: 'GraphSearched.v1', data: { findings: [section('a', 'Text.')] } };
const written: ReportEvent = { type: 'ReportWritten.v2', data: quoted('# Report') };

describe('reports', () => {
  it('collect findings, and keep only their text when they have ended', () => {
    expect(given(requested, planned, searched)).toMatchObject({ phase: 'researching', searched: 1, written: null });
    expect(given(requested, planned, searched).findings).toHaveLength(1);
    expect(given(requested, planned, searched, written)).toMatchObject({
      phase: 'ready',
      written: { results: '# Report', method: 'extractive' },
      findings: [],
      found: 1,
    });
  });

  it('are cancelled until they have ended', () => {
    const cancelled: ReportEvent = { type: 'ReportCancelled.v1', data: {} };
    expect(decideCancel(given(requested, planned))).toEqual({ ok: true, events: [cancelled] });
    for (const end of [written, cancelled])
      expect(decideCancel(given(requested, end))).toEqual({ ok: true, events: [] });
  });
});

const textOf = (query: string, asked: Plan, findings: Finding[]): Promise<string> =>
  writeReport({ query, plan: asked, findings });

describe('the text of a report', () => {
  it('cites passages by numbers, in the order in which they are cited', async () => {
    const asked = plan(term('warehouse'), term('bremen'), term('michigan', { found: 'none' }));
    const findings = [
      section('Hours', 'The warehouse in Bremen opens at nine. Bring a coat.'),
      section('Staff', 'Ada runs the warehouse.', { sources: [], labels: ['Person'], summary: 'Runs the warehouse' }),
    ];
    const text = await textOf('Warehouse in Bremen, Michigan?', asked, findings);
    expect(text).toContain('*Extractive report:');
    expect(text).toContain('- **Hours**: The warehouse in Bremen opens at nine. [1]');
    expect(text).toContain('- Staff: Runs the warehouse. [2]');
    expect(text).toContain('Nothing was found for: michigan.');
    expect(text).toContain('1. **Manual**, Hours <https://example.org/a%20b>: The warehouse in Bremen opens at nine.');
    expect(text).toContain('2. A caller\'s statement in the graph "Company"');
    expect(await textOf('Warehouse in Bremen, Michigan?', asked, findings)).toBe(text);
  });

  it.each([
    ['a table', '| Day | Opens |\n| --- | --- |\n| Monday | nine |'],
    ['words without sentences', 'warehouse opening hours: Monday nine'],
    ['code', '```\nwarehouse --opens 9\n```'],
  ])('shows what was found where it is %s, and does not say that there is nothing', async (_, passage) => {
    const asked = plan(term('warehouse'), term('opens'));
    const text = await textOf('When does the warehouse open?', asked, [section('Warehouse hours', passage)]);
    expect(text).not.toContain('holds nothing');
    expect(text).toMatch(/- \*\*Warehouse hours\*\*: .*(?:nine|opens 9).* \[1\]\n/);
    expect(text).toContain('## Sources\n\n1. **Manual**, Warehouse hours');
    expect(await textOf('When does the warehouse open?', asked, [])).toContain('holds nothing on this question');
  });

  it('quotes sentences with their footnotes, which are no citations of the report', async () => {
    const asked = plan(term('warehouse'));
    const text = await textOf('warehouse', asked, [
      section('Hours', 'The warehouse opens at nine.[12] It was built in 1901.¹'),
    ]);
    expect(text).toContain('The warehouse opens at nine.\\[12\\] [1]');
  });

  it('answers first with the first sentence under a heading of the query, and names the heading', async () => {
    const text = await textOf('partial index', plan(term('partial'), term('index')), [
      section('Manual (2)', 'Each partial index is described here.'),
      section('Costs (2)', 'Many small tables can be cheaper than a partial index.'),
      section('Partial indexes', 'A partial index covers a part of a table. It pays where a partial index is small.'),
    ]);
    expect(text).toMatch(/## Answer\n\n- \*\*Partial indexes\*\*: A partial index covers a part of a table\. \[1\]\n/);
    expect(text).toContain('- Each partial index is described here. [');
    expect(text).toContain('- **Costs**: Many small tables can be cheaper than a partial index. [');
  });

  it('cites one of several passages that say the same', async () => {
    const asked = plan(term('bremen'), term('gate'));
    const page = (hour: number, end: string) =>
      `The warehouse in Bremen opens at ${hour} and closes at five${end} Deliveries arrive at the north gate, where the ` +
      `staff of the warehouse checks them${end} Visitors to Bremen use the gate in the south${end}`;
    const copies = [page(9, '.'), page(9, '!'), page(10, '.')].map((passage, index) =>
      section(`Hours ${index}`, passage, {
        sources: [{ documentId: `d${index}`, name: `Page ${index}`, url: null, passage }],
      }),
    );
    const text = await textOf('Bremen gate?', asked, copies);
    expect(text).toContain('\n1. **Page 0**');
    expect(text).not.toContain('\n2. ');
    expect(text).toContain('- Left out: 2 passages that say nearly the same as another one.');
    // Short ones that differ by a number say different things.
    const years = [2021, 2022].map((year) => section(`${year}`, `In ${year}, Bremen had ${year - 2000} gates.`));
    const both = await textOf('Bremen gates?', plan(term('bremen'), term('gates')), years);
    expect(both).toContain('In 2021, Bremen had 21 gates.');
    expect(both).toContain('In 2022, Bremen had 22 gates.');
  });

  it('says that nothing was found', async () => {
    expect(await textOf('Michigan?', plan(term('michigan', { found: 'none' })), [])).toContain(
      'The knowledge graph holds nothing on this question.',
    );
    expect(await textOf('Michigan?', { graphs: [], questions: [], terms: [] }, [])).toContain(
      'There is no knowledge graph to search.',
    );
  });

  it('shows text from outside as it is', async () => {
    const hostile = 'The warehouse <script>alert(1)</script> has ![x](javascript:x) and [a](b) &amp; snake_case.';
    const fact = section('Ada', '', { labels: [], edge: { fact: hostile, name: null, target: '' }, sources: [] });
    const text = await textOf('# warehouse', plan(term('warehouse')), [fact]);
    expect(text).toContain(
      'The warehouse \\<script\\>alert(1)\\</script\\> has !\\[x\\](javascript:x) and \\[a\\](b) &amp;amp; snake_case.',
    );
    expect(text).toMatch(/^# # warehouse\n/);
  });
});
