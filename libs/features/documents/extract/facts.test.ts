import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import type { Content, Extraction } from './extraction.ts';
import { extractFacts } from './facts.ts';
import { readPage } from './page.ts';

function extract(text: string, more: Partial<Content> = {}): Extraction {
  return extractFacts({
    documentId: 'd1',
    name: 'Server guide',
    url: null,
    contentType: 'text/markdown',
    text,
    ...more,
  });
}

/** `[label] name: summary`, for each node. */
function nodes({ nodes }: Extraction): string[] {
  return nodes.map(
    ({ labels, name, summary }) => `[${labels.join()}] ${name}${summary === null ? '' : `: ${summary}`}`,
  );
}

function facts({ edges }: Extraction, name?: string): string[] {
  const wanted = edges.filter((edge) => (name === undefined ? edge.name !== 'has section' : edge.name === name));
  return wanted.map((edge) => edge.fact);
}

describe('sections', () => {
  it('are nodes with their text, below the document', () => {
    const found = extract('Runs everywhere.\n\n# Ports\n\nIt listens on 8080.\n\nAnd on 8443.\n\n## TLS\nNeeds a key.');
    expect(nodes(found)).toEqual([
      '[Document] Server guide: Runs everywhere.',
      '[Section] Ports: It listens on 8080. And on 8443.',
      '[Section] TLS: Needs a key.',
    ]);
    expect(found.passages).toEqual([
      'Runs everywhere.',
      '# Ports\n\nIt listens on 8080.\n\nAnd on 8443.',
      '## TLS\nNeeds a key.',
    ]);
    expect(facts(found, 'has section')).toEqual(['Ports: It listens on 8080. And on 8443.', 'TLS: Needs a key.']);
  });

  it('are the document itself under a heading that is its title', () => {
    const found = extract('# Server guide\n\nRuns everywhere.\n\n## Ports\n\n8080', { name: 'Server guide | Docs' });
    expect(nodes(found)).toEqual(['[Document] Server guide | Docs: Runs everywhere.', '[Section] Ports: 8080']);
  });

  it('are named with the heading above where theirs is generic, or repeated', () => {
    const names = (text: string) => extract(text).nodes.map(({ name }) => name);
    expect(
      names('# Redis\nx\n## Beispiele\nx\n## Limits\nx\n# Kafka\nx\n## Limits\nx\n### Overview\nx\n## 第一章\nx'),
    ).toEqual([
      'Server guide',
      'Redis',
      'Redis › Beispiele',
      'Redis › Limits',
      'Kafka',
      'Kafka › Limits',
      'Limits › Overview',
      '第一章',
    ]);
  });

  it('without text tell what is below them', () => {
    expect(nodes(extract('# Ports\n\n## HTTP\nx\n## TLS\ny\n# Other\nz'))).toContain('[Section] Ports: HTTP, TLS');
  });

  it('are split between paragraphs, sentences or words, at about 1,500 characters', () => {
    const paragraph = `${'Ein Satz über etwas. '.repeat(40).trim()}`;
    const text = `# Lang\n\n${paragraph}\n\n${paragraph}\n\n${'这是一个句子。'.repeat(400)}\n\n${'x'.repeat(4_000)}`;
    const found = extract(text);
    expect(found.passages.slice(0, 2)).toEqual([`# Lang\n\n${paragraph}`, paragraph]);
    expect(Math.max(...found.passages.map((passage) => passage.length))).toBeLessThanOrEqual(1_500);
    expect(found.passages.filter((passage) => /^这[^]*。$/.test(passage))).toHaveLength(2);
    expect(found.passages.join('').replace(/\s/g, '')).toBe(text.replace(/\s/g, ''));
    expect(found.nodes.map(({ name }) => name).slice(1, 4)).toEqual(['Lang', 'Lang (2)', 'Lang (3)']);
  });

  it('keep their keys when another one changes', () => {
    const keys = (text: string) => extract(text).nodes.map(({ key }) => key);
    const before = keys('# A\nx\n# B\nx');
    expect(keys('# New\ntext\n# A\nchanged\n# B\nx')).toEqual(expect.arrayContaining(before));
    expect(extract('# A', { documentId: 'd2' }).nodes.map(({ key }) => key)).not.toEqual(keys('# A'));
  });

  it('of plain text begin at underlined headings only', () => {
    const found = extract('# no heading\n\n\n----\ntext', { contentType: 'text/plain' });
    expect(nodes(found)).toEqual(['[Document] Server guide: # no heading ---- text']);
  });
});

describe('tables with a header row', () => {
  const table =
    '# Flags\n\n| Option | Default | Text |\n| --- | :-: | --- |\n| `port` | 8080 | The port |\n| host | | a\\|b |\n';

  it('give a node for each row, and a fact for each value', () => {
    const found = extract(table);
    expect(nodes(found)).toEqual(
      expect.arrayContaining([
        '[Option] port: Default: 8080; Text: The port; Flags',
        '[Option] host: Text: a|b; Flags',
        '[Value] 8080',
      ]),
    );
    expect(facts(found)).toEqual([
      'port (Flags) — Default: 8080',
      'port (Flags) — Text: The port',
      'host (Flags) — Text: a|b',
    ]);
    const edge = found.edges.find(({ name }) => name === 'Default')!;
    expect(edge.isSingleValued).toBe(true);
    expect(table.slice(edge.offset!)).toMatch(/^`port` \|/);
    expect(found.passages[edge.passage!]).toBe('`port` | 8080 | The port |');
  });

  it('are named by the second column when the first numbers the rows', () => {
    expect(nodes(extract('| # | Name | Size |\n|--|--|--|\n| 1 | disk | 5 |'))).toContain(
      '[Row] disk: Size: 5; Server guide',
    );
  });

  it('give nothing without a header', () => {
    expect(extract('|  |  |\n|--|--|\n| a | b |').nodes).toHaveLength(1);
  });
});

describe('lists of key: value', () => {
  it('are facts of their section', () => {
    const found = extract('# Widget\n\nPrice: 5 €\nGewicht: 3 kg\n\n- **Color**: red\n- 大小：大\n- plain\n');
    expect(facts(found)).toEqual([
      'Widget — Price: 5 €',
      'Widget — Gewicht: 3 kg',
      'Widget — Color: red',
      'Widget — 大小: 大',
    ]);
    expect(found.edges.filter((edge) => edge.name !== 'has section').every((edge) => edge.isSingleValued)).toBe(true);
  });

  it('define terms when the values are long', () => {
    const meaning = 'a stream of events that is folded into the state of one thing, and never changed afterwards';
    const found = extract(`# Words\n\n- entity: ${meaning}`);
    expect(nodes(found)).toContain(`[Term] entity: ${meaning}`);
    expect(facts(found)).toEqual([`entity: ${meaning}`]);
  });

  it('have several values where the document states several', () => {
    const found = extract('- Color: red\n- Color: blue\n- Size: 5');
    const properties = found.edges.map(({ fact, isSingleValued }) => [fact, isSingleValued]);
    expect(properties).toEqual([
      ['Server guide — Color: red', false],
      ['Server guide — Color: blue', false],
      ['Server guide — Size: 5', true],
    ]);
  });

  it.each([
    'A sentence: with a colon.\nAnother line without one.',
    'Note: this is a remark.\nWarning: so is this.',
    'https://example.org/a\nhttps://example.org/b',
    'At 12:30 there was nothing.\nAt 12:45 there was.',
    '```\nkey: value\nother: value\n```',
  ])('are not what only looks like one: %j', (text) => {
    expect(facts(extract(text))).toEqual([]);
  });
});

describe('structured data', () => {
  const structured = (jsonLd: Content['structured'] extends infer _ ? unknown[] : never) =>
    extract('text', {
      url: 'https://example.org/a#x',
      structured: { jsonLd, microdata: [], openGraph: { author: 'Ada L.' }, links: [] } as never,
    });

  it('gives typed nodes, and facts for what connects them', () => {
    const found = structured([
      {
        '@type': 'schema:Product',
        name: 'Lamp',
        description: 'A <b>bright</b> lamp',
        color: ['red', 'green'],
        brand: { '@type': 'Brand', name: 'Lux' },
        maker: { '@id': '_:b1' },
      },
      { '@id': '_:b1', '@type': ['Organization'], name: 'Lux Ltd' },
      { '@type': 'BreadcrumbList', name: 'Path' },
      { '@type': 'NewsArticle', headline: 'News', publisher: { '@type': 'Organization', name: 'Lux  LTD' } },
    ]);
    expect(nodes(found)).toEqual([
      '[Document] Server guide: text',
      '[Product] Lamp: A bright lamp color: red, green',
      '[Brand] Lux',
      '[Organization] Lux Ltd',
      '[Person] Ada L.',
    ]);
    expect(found.edges.map(({ source, name, target }) => [source, name, target])).toEqual([
      ['Product:lamp', 'brand', 'Brand:lux'],
      ['Product:lamp', 'maker', 'Organization:lux ltd'],
      ['url:https://example.org/a', 'describes', 'Product:lamp'],
      ['url:https://example.org/a', 'describes', 'Organization:lux ltd'],
      ['url:https://example.org/a', 'publisher', 'Organization:lux ltd'],
      ['url:https://example.org/a', 'author', 'Person:ada l.'],
    ]);
  });

  it('ends in cycles and deep nesting', () => {
    let deep: unknown = { name: 'end' };
    for (let depth = 0; depth < 11; depth += 1) deep = { name: `n${depth}`, next: deep };
    const found = structured([
      { '@id': 'a', name: 'A', knows: { '@id': 'b' } },
      { '@id': 'b', name: 'B', knows: { '@id': 'a' } },
      deep,
    ]);
    expect(facts(found, 'knows')).toEqual(['B — knows: A', 'A — knows: B'].toSorted().toReversed());
    expect(found.nodes.length).toBeLessThan(15);
  });
});

describe('links', () => {
  it('connect the document with pages of other sites', () => {
    const text =
      'See [the manual](https://example.org/manual#top), [here](https://example.org/x "x"), [a](/local), ' +
      '![img](https://i.example/y.png), [own](https://Own.example/y), [again](https://example.org/x), [mail](mailto:a@b.c).';
    const found = extract(text, { url: 'https://own.example/page' });
    expect(facts(found)).toEqual(['the manual: https://example.org/manual#top', 'https://example.org/x']);
    expect(nodes(found)).toContain('[Link] the manual: https://example.org/manual#top');
    expect(text.slice(found.edges[0]!.offset!)).toMatch(/^\[the manual\]/);
  });

  it('are limited to 20', () => {
    const text = Array.from({ length: 100 }, (_, index) => `[page ${index} x](https://example.org/${index})`).join(' ');
    expect(facts(extract(text))).toHaveLength(20);
  });
});

describe('JSON documents', () => {
  const json = (value: unknown) => extract(JSON.stringify(value), { contentType: 'application/json' });

  it('give a node for each object with a name, and facts for what it holds', () => {
    const found = json({
      version: 3,
      server: { port: 8080 },
      users: [{ id: 7, name: 'Ada', tags: ['a', 'b'], boss: { name: 'Eve' } }],
    });
    expect(nodes(found)).toEqual([
      '[Document] Server guide: version: 3',
      '[Value] 3',
      '[Value] 8080',
      '[users] Ada: id: 7; name: Ada; tags: a, b',
      '[boss] Eve: name: Eve',
    ]);
    expect(facts(found)).toEqual([
      'Server guide — version: 3',
      'Server guide — server.port: 8080',
      'Server guide — users: Ada',
      'Ada — boss: Eve',
    ]);
  });

  it('are text when they are not JSON', () => {
    expect(nodes(extract('{broken', { contentType: 'application/json' }))).toEqual([
      '[Document] Server guide: {broken',
    ]);
  });
});

describe('all facts', () => {
  it('of a page lead from its table to its place in the text', () => {
    const html =
      '<title>Ports</title><main><h1>Ports</h1><p>All ports of the server are listed in this table.</p><table><tr><th>Port</th><th>Use</th></tr><tr><td>2113</td><td>Event store</td></tr></table></main>';
    const page = readPage(new TextEncoder().encode(html), { url: 'https://example.org/', contentType: 'text/html' });
    const found = extract(page.text, { name: page.title!, structured: page.structured });
    expect(facts(found)).toEqual(['2113 (Ports) — Use: Event store']);
  });

  it('are limited, and the document says so', () => {
    const rows = Array.from({ length: 6_000 }, (_, index) => `| r${index} | ${index} | ${index} | ${index} |`).join(
      '\n',
    );
    const found = extract(`| A | B | C | D |\n|--|--|--|--|\n${rows}`);
    expect(found).toMatchObject({ truncated: true });
    expect(found.nodes.length).toBeLessThanOrEqual(2_000);
    expect(found.edges.length).toBeLessThanOrEqual(5_000);
    expect(found.passages.length).toBeLessThan(6_000);
    expect(extract('# A\ntext').truncated).toBe(false);
  });

  const line = fc.oneof(
    fc.constantFrom(
      '# Heading',
      '## Überblick',
      '| a | b |',
      '|---|---|',
      '| x | 1 |',
      '- key: value',
      'Name: 値',
      '```',
      '> quote',
      '1. item',
      '===',
      '[t](https://e.org/x)',
      '{"name":"x","a":[1]}',
      '',
    ),
    fc.string({ unit: 'grapheme', maxLength: 40 }),
    fc.string({ unit: 'binary', maxLength: 2_000 }),
  );
  const contents = fc.record({
    text: fc.array(line, { maxLength: 30 }).map((lines) => lines.join('\n')),
    contentType: fc.constantFrom('text/markdown', 'text/plain', 'application/json'),
    name: fc.string(),
  }) as fc.Arbitrary<Pick<Content, 'text' | 'contentType' | 'name'>>;

  it('are the same each time, point into the text, and connect nodes that exist', () => {
    fc.assert(
      fc.property(contents, ({ text, ...more }) => {
        const found = extract(text, more);
        expect(extract(text, more)).toEqual(found);
        const keys = new Set(found.nodes.map(({ key }) => key));
        expect(keys.size).toBe(found.nodes.length);
        for (const passage of found.passages) expect(text).toContain(passage);
        for (const { passage, offset } of [...found.nodes, ...found.edges]) {
          if (passage === null) continue;
          expect(found.passages[passage]).toBeDefined();
          expect(offset!).toBeLessThan(text.length);
          expect(text.slice(Math.max(0, offset! - 1_500), offset! + 1_500)).toContain(found.passages[passage]);
        }
        for (const { source, target } of found.edges) expect(keys.has(source) && keys.has(target)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['brackets', '['.repeat(1_000_000)],
    ['unclosed links', '[a]('.repeat(500_000)],
    ['pipes', '|'.repeat(1_000_000)],
    ['a table of one row', `| a | b |\n|--|--|\n|${' x |'.repeat(200_000)}`],
    ['dashes', `a | b\n${'-|'.repeat(1_000_000)}`],
    ['one word', 'x'.repeat(2_000_000)],
    ['white space', ' \n'.repeat(1_000_000)],
    ['headings', '# a\n'.repeat(100_000)],
    ['colons', 'a: '.repeat(700_000)],
    ['items', '- a: b\n'.repeat(50_000)],
    ['ticks', '`'.repeat(2_000_000)],
    ['stars', '*'.repeat(2_000_000)],
    ['backslashes', '\\|'.repeat(1_000_000)],
    ['deep JSON', `${'{"name":"x","a":'.repeat(200_000)}1${'}'.repeat(200_000)}`],
    ['long JSON', JSON.stringify(Array.from({ length: 100_000 }, (_, index) => ({ name: `é${index}` })))],
  ])('are found in linear time: %s', (name, text) => {
    const contentType = name.includes('JSON') ? 'application/json' : 'text/markdown';
    expect(extract(text, { contentType }).nodes.length).toBeGreaterThan(0);
  });
});
