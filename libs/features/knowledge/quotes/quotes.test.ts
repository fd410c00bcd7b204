import { describe, expect, it } from 'vitest';

import { plan, section, term } from '#test/support/findings.ts';

import { findingOf, isRelevant, newFindings, questionsOf } from './findings.ts';
import { sentencesOf } from './sentences.ts';
import { occurrenceOf, subjectWords } from './terms.ts';

describe('the plan of a search', () => {
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

  it.each([
    ['numbers', 'It opens at nine.[12] It closes at five.[13][14] There is a break at noon.[3]:45'],
    ['numbers in superscript', 'It opens at nine.¹ It closes at five.²³ There is a break at noon.⁴'],
    ['letters and words', 'It opens at nine.[a] It closes at five.[note 1] There is a break at noon.[citation needed]'],
    ['signs', 'It opens at nine.† It closes at five.* There is a break at noon.‡'],
    ['marks of Markdown', 'It opens at nine.[^1] It closes at five.[^two] There is a break at noon.'],
    ['quotations', 'She said "it opens at nine."[3] He said “it closes at five.”[4] There is a break at noon.'],
  ])('end with footnotes that are %s', (_, text) => {
    const marks = String.raw`(?:\[[^\]]*\]|[¹²³⁴†‡*])*(?::\d+)?`;
    expect(sentencesOf(text)).toEqual(text.match(new RegExp(String.raw`\S[^.]*\.["”]?${marks}`, 'g')));
    expect(sentencesOf(text)).toHaveLength(3);
  });

  it.each([
    ['仓库九点开门。[1]它五点关门！“明天见。”他说。', ['仓库九点开门。[1]', '它五点关门！', '“明天见。”', '他说。']],
    ['倉庫は九時に開く。「また明日。」', ['倉庫は九時に開く。', '「また明日。」']],
    ['창고는 9시에 연다. 5시에 닫는다.', ['창고는 9시에 연다.', '5시에 닫는다.']],
    ['यह नौ बजे खुलता है। यह पाँच बजे बंद है॥', ['यह नौ बजे खुलता है।', 'यह पाँच बजे बंद है॥']],
    ['یہ نو بجے کھلتا ہے۔', ['یہ نو بجے کھلتا ہے۔']],
    ['Պահեստը բացվում է իննին։', ['Պահեստը բացվում է իննին։']],
  ])('of other scripts may be short: %j', (text, sentences) => {
    expect(sentencesOf(text)).toEqual(sentences.filter((sentence) => sentence !== '他说。'));
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
