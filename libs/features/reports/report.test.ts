import { describe, expect, it } from 'vitest';

import { describeStoredEvents } from '#test/support/event-samples.ts';
import { stateAfter } from '#test/support/log-events.ts';

import samples from './report.events.samples.json' with { type: 'json' };
import {
  decideCancel,
  type Finding,
  type Plan,
  quoted,
  type Report,
  reportCodec,
  type ReportEvent,
  reportFold,
  type Term,
} from './report.ts';
import { writeReport } from './report.text.ts';
import { findingOf, isRelevant, newFindings, questionsOf } from './research.ts';
import { sentencesOf } from './sentences.ts';
import { occurrenceOf, subjectWords } from './terms.ts';

describeStoredEvents('reports', reportCodec, samples, {
  'ReportWritten.v1': { type: 'ReportWritten.v2', data: quoted('# Who runs the warehouse?') },
});

const term = (word: string, values: Partial<Term> = {}): Term => ({
  word,
  weight: 2,
  found: 'exact',
  correction: null,
  ...values,
});
const plan = (...terms: Term[]): Plan => ({ graphs: [{ id: 'g', name: 'Company' }], questions: ['?'], terms });
const section = (name: string, passage: string, values: Partial<Finding> = {}): Finding => ({
  graphId: 'g',
  uuid: name,
  name,
  labels: ['Section'],
  summary: null,
  edge: null,
  sources: [{ documentId: 'd', name: 'Manual', url: 'https://example.org/a b', passage }],
  hop: 0,
  ...values,
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

describe('the plan of a report', () => {
  it('asks for the query, its parts, and the names in it that the graph has', () => {
    const query = 'How does vacuum reclaim disk space, and what is transaction ID wraparound?';
    expect(questionsOf(query, ['Disk Space', 'Vacuum', 'Unrelated', 'Vacuum Basics'])).toEqual([
      query,
      'vacuum reclaim disk space',
      'transaction ID wraparound',
      'Disk Space',
      'Vacuum',
    ]);
    expect(questionsOf('vacuum', ['VACUUM'])).toEqual(['vacuum']);
    expect(questionsOf('???', [])).toEqual(['???']);
  });

  it('leaves out words without a subject, unless there are no others', () => {
    expect(subjectWords("What's going on in Grand Rapids, Michigan?")).toEqual(['grand', 'rapids', 'michigan']);
    expect(subjectWords('What is the difference?')).toEqual(['difference']);
  });

  it('knows words that occur, that are misspelled, and that do not occur', () => {
    expect(occurrenceOf('index', ['All indexes'])).toEqual({ found: 'exact', correction: null });
    expect(occurrenceOf('vacum', ['The vacuum'])).toEqual({ found: 'similar', correction: 'vacuum' });
    expect(occurrenceOf('michigan', ['Ohio'])).toEqual({ found: 'none', correction: null });
  });
});

describe('findings', () => {
  it('have a good part of the query', () => {
    const asked = plan(term('grand'), term('rapids'), term('michigan'));
    expect(isRelevant(section('Totals', 'The grand total of a report.'), asked)).toBe(false);
    expect(isRelevant(section('Cities', 'Grand Rapids is a city.'), asked)).toBe(true);
  });

  it('are recorded once, the best first, without the table of contents', () => {
    const asked = plan(term('index'), term('vacuum'));
    const [a, b] = [section('a', 'An index.'), section('b', 'Vacuum an index.')];
    const contents = { ...a, uuid: 'c', edge: { fact: 'a', name: 'has section', target: 'a' } };
    expect(newFindings([], [a, b, b, contents], asked)).toEqual([b, a]);
    expect(newFindings([b], [a, b], asked)).toEqual([a]);
  });

  it('that repeat another one come last', () => {
    const asked = plan(term('cookies'), term('vacuum'));
    const notice = (index: number) =>
      section(
        `n${index}`,
        `This site uses cookies to run the vacuum of page ${index}, and to count the readers of the manual.`,
      );
    const repeated = Array.from({ length: 40 }, (_, index) => notice(index));
    const other = section('other', 'Vacuum.');
    const found = newFindings([], [...repeated, other], asked);
    expect(found).toHaveLength(24);
    expect(found.slice(0, 2)).toEqual([repeated[0], other]);
  });

  it('of edges name both ends, and have a bounded size', () => {
    const found = {
      graphId: 'g',
      uuid: 'e',
      fact: 'x'.repeat(5_000),
      name: null,
      source_node_uuid: 's',
      target_node_uuid: 't',
      created_at: '',
      valid_at: null,
      invalid_at: null,
      sources: [],
    };
    const names = new Map([
      ['s', 'Ada'],
      ['t', 'Grace'],
    ]);
    const finding = findingOf(found, 1, names);
    expect(finding).toMatchObject({ name: 'Ada', edge: { target: 'Grace' }, hop: 1 });
    expect(finding.edge?.fact).toHaveLength(1_500);
  });
});

describe('sentences', () => {
  it('are whole, without code, headings, tables and Markdown', () => {
    const passage = [
      '# Heading',
      '',
      'rest of a sentence. **Vacuum** reclaims [space](https://example.org), e.g. of `rows`.',
      'It is',
      'wrapped \\_here\\_.',
      '```',
      'This is code, not text.',
      '```',
      '| A row | is no text. |',
      '- An item of a list.',
      'Only the operators @> and @? are supported here.',
    ].join('\n');
    expect(sentencesOf(passage)).toEqual([
      'Vacuum reclaims space, e.g. of rows.',
      'It is wrapped _here_.',
      'An item of a list.',
      'Only the operators @> and @? are supported here.',
    ]);
    expect(sentencesOf('倉庫は九時から十七時まで開いています。')).toHaveLength(1);
  });

  const text = 'The warehouse opens at nine.';
  it.each([
    ['an indented block', `${text}\n\n    Call this function with no argument.\n\nIt closes at five.`],
    ['an indented block of a tab', `${text}\n\n\tCall this function with no argument.\n\nIt closes at five.`],
    ['an indented block in an item', `- ${text}\n\n      Call this function with no argument.\n\n- It closes at five.`],
    [
      'a fence of another kind within one',
      `${text}\n\n~~~\nRun this line first.\n\`\`\`\nAnd this line too.\n~~~\nIt closes at five.`,
    ],
    [
      'a shorter fence within one',
      `${text}\n\n\`\`\`\`md\nRun this line first.\n\`\`\`\nAnd this line too.\n\`\`\`\`\nIt closes at five.`,
    ],
    [
      'a fence with a language within one',
      `${text}\n\n\`\`\`\nRun this line first.\n\`\`\`sh\nAnd this line too.\n\`\`\`\nIt closes at five.`,
    ],
    ['code in a span of two signs', `${text} It \`\`calls a \` function\`\`.\n\nIt closes at five.`],
    ['HTML', `${text}\n\n<div>\nThis is a part of a page.\n</div>\n\nIt closes at five.`],
    [
      'lines of signs',
      `${text}\n\n{ "a": [1, 2], "b": { "c": "D." } }.\n\nFor (i = 0; i < n; i++) { x[i] += y[i] * z; }.\n\n=> () => {} || [] && !x === y.\n\nIt closes at five.`,
    ],
    [
      'rows of a table without its head',
      `${text}\n\n| A row | is no text. |\n| Nor is | this one here. |\n\nIt closes at five.`,
    ],
  ])('are not taken from %s', (_what, passage) => {
    const sentences = sentencesOf(passage);
    expect(sentences[0]).toBe(text);
    expect(sentences.at(-1)).toBe('It closes at five.');
    expect(sentences.join(' ')).not.toMatch(/argument|Run|And this|page|row|Nor|[{=]/);
  });

  it('may name operators, formulas and paths', () => {
    const named = [
      'Write a && b, or a || b, where both may be null.',
      'The ratio is x = (a + b) / 2 for each row of the table.',
      'The file is in /etc/parley/config.json of the machine.',
      'Prices rose by 5.2% (from €10 to €10.52) in 2024.',
    ];
    expect(sentencesOf(named.join('\n\n'))).toEqual(named);
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
