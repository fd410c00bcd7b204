/** Queries to the index of one graph. */
import { describe, expect, it } from 'vitest';

import { edge, learned, node } from './graph-facts.ts';
import { ask, nodeNames, useIndexFolder } from './index-questions.ts';

const { indexOf } = useIndexFolder();

describe('a query', () => {
  const index = indexOf([
    learned([node('Vacuum'), node('Autovacuum daemon', 'Removes dead rows'), node('Transaction isolation')]),
    learned([node('数据库索引'), node('قاعدة البيانات'), node('Café'), node('pg_dump'), node('Rocket 🚀')]),
    learned([node('The'), node('Indexes on expressions'), node('Reindexing')], {
      edges: [edge('Vacuum', 'Indexes on expressions', 'cleans up')],
    }),
  ]);

  it.each([
    ['vacuum', 'Vacuum'],
    ['VACCUUM', 'Vacuum'],
    ['transacton isolatoin', 'Transaction isolation'],
    ['autovac', 'Autovacuum daemon'],
    ['index', 'Indexes on expressions'],
    ['索引', '数据库索引'],
    ['库', '数据库索引'],
    ['بيانات', 'قاعدة البيانات'],
    ['cafe', 'Café'],
    ['dump', 'pg_dump'],
    ['pg_dump', 'pg_dump'],
    ['🚀', 'Rocket 🚀'],
    ['the', 'The'],
    ['removes rows', 'Autovacuum daemon'],
  ])('%j finds %j first', (query, name) => {
    expect(nodeNames(index, query)?.[0]).toBe(name);
  });

  it('puts what has more of its words before what has one of them often', () => {
    const both = indexOf([learned([node('red red red', 'red red red'), node('red blue'), node('blue')])]);
    expect(nodeNames(both, 'blue red')?.[0]).toBe('red blue');
  });

  it.each(['Vacuum', 'vacuum', ' "VACUUM"! '])('puts the node whose name is %j before all others', (query) => {
    const summary = 'vacuum vacuum vacuum';
    const named = indexOf([
      learned([node('Vacuum vacuum', summary), node('Vacuum full', summary), node('Other', summary)], {
        document: 'about',
      }),
      learned([node('Vacuum')], { document: 'long' }),
      learned(
        Array.from({ length: 60 }, (_, at) => node(`Vacuum vacuum ${at}`, summary)),
        { document: 'many' },
      ),
    ]);
    expect(nodeNames(named, query, { limit: 3 })?.[0]).toBe('Vacuum');
  });

  it('puts a signature before others by the name that it gives, whatever its parameters are', () => {
    const parameters =
      "file, mode='r', buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None";
    const functions = indexOf([
      learned([node('Opening files', 'open open open opens'), node('open dialog', 'open')], { document: 'other' }),
      learned([node(`open(${parameters})`, 'Open file and return a file object.'), node('abs(x)')]),
    ]);
    expect(nodeNames(functions, 'open')?.[0]).toBe(`open(${parameters})`);
    expect(nodeNames(functions, 'open(file)')?.[0]).toBe(`open(${parameters})`);
    expect(nodeNames(functions, 'closefd')).toEqual([`open(${parameters})`]);
  });

  it('judges a match in a name by the length of the name, not by that of its text', () => {
    const text = 'one two three four five six seven eight nine ten '.repeat(40);
    const named = indexOf([
      learned([node('Print settings of the older machines', 'x')], { document: 'a' }),
      learned([node('Print jobs', text)], { document: 'b' }),
      learned([node('Colours', text), node('Paper', 'of no use')], { document: 'c' }),
    ]);
    expect(nodeNames(named, 'print')?.[0]).toBe('Print jobs');
  });

  it.each([
    ['printing', 'Printing of old maps', 'The prints'],
    ['speeds', 'All speeds that were measured', 'Speed'],
    ['organise', 'How we organise work', 'Organization'],
  ])('for %j puts %j before %j', (query, exact, inflected) => {
    const both = indexOf([
      learned([node(inflected)], { document: 'a' }),
      learned([node(exact)], { document: 'b' }),
      learned([node('Others are here')], { document: 'c' }),
    ]);
    expect(nodeNames(both, query)).toEqual([exact, inflected]);
  });

  it('counts a word more that it repeats', () => {
    const two = indexOf([learned([node('A', 'red'), node('B', 'blue')])]);
    expect(nodeNames(two, 'red blue, blue')?.[0]).toBe('B');
    expect(nodeNames(two, 'red red blue')?.[0]).toBe('A');
  });

  const polite =
    'Good morning dear colleagues, thank you very much for the excellent service last week, everybody here was happy with ' +
    'the fast delivery and the friendly person who called; today we have a small question about the contract:';
  it.each([
    ['before', `${polite} when does the lighthouse warranty expire?`],
    ['after', `When does the lighthouse warranty expire? ${polite}`],
  ])('of a long message finds the question %s what is said besides', (_, query) => {
    const said = polite.match(/[a-z]{4,}/g) ?? [];
    const letters = said.map(
      (_word, at) => `A letter of one page says ${[...said, ...said].slice(at, at + 4).join(' ')} on it`,
    );
    const many = indexOf([
      ...letters.map((text, at) => learned([node(`Letter ${at}`, text)], { document: `letter ${at}` })),
      learned([node('Terms', 'The warranty of a lighthouse expires after ten years.')], { document: 'terms' }),
    ]);
    expect(nodeNames(many, query)?.[0]).toBe('Terms');
  });

  it.each([
    ['wifi', 'Wi-Fi'],
    ['Wi-Fi', 'wifi'],
    ['node.js', 'nodejs'],
    ['nodejs', 'Node.js'],
    ['e-mail', 'email'],
    ['email', 'e‑mail'],
    ['AT&T', 'ATT'],
    ['speeds', 'speed'],
    ['speed', 'speeds'],
    ['development', 'developed'],
    ['C#', 'C#'],
    ['c++', 'C++17'],
    ['notepad', 'Notepad++'],
    ['hyphenation', 'hyphen\u00adation'],
  ])('%j finds %j, before what only looks like it', (query, text) => {
    const others = node('Others', 'spe C dev wired noder spell de elopement');
    expect(nodeNames(indexOf([learned([node('Found', `the ${text} of it`), others])]), query)?.[0]).toBe('Found');
  });

  it.each([
    ['c#', 'c++'],
    ['c++', 'C and C#'],
    ['speed', 'spell'],
    ['notepad++', 'c++'],
  ])('%j does not find %j', (query, text) => {
    expect(nodeNames(indexOf([learned([node('Other', `the ${text} of it`)])]), query)).toEqual([]);
  });

  it('puts a node by its name before others as it was named then only', () => {
    const renamed = indexOf([
      learned([node('Plan'), { ...node('Plan B'), name: 'Plan' }, node('Plan plan', 'plan')]),
      learned([{ ...node('Plan B'), name: 'Plan B plan plan' }]),
    ]);
    const firstTwo = (asOf: object) => nodeNames(renamed, 'plan', asOf)?.slice(0, 2);
    expect(firstTwo({ asOf: { sequence: 1 } })).toEqual(['Plan', 'Plan']);
    expect(firstTwo({})?.[0]).toBe('Plan');
  });

  it.each([
    ['one', 'other'],
    ['other', 'one'],
  ])('prefers the document %j, which has more of it, and lets it not fill the answer', (more, less) => {
    const two = indexOf([
      learned([node(`backup ${more}`), node(`backup again ${more}`), node(`cats ${more}`)], { document: more }),
      learned([node(`backup ${less}`), node(`dogs ${less}`), node(`cats ${less}`)], { document: less }),
    ]);
    const { nodes = [], total_nodes: total } = ask(two, 'backup', { limit: 2 }) ?? {};
    expect(nodes.map(({ sources }) => sources[0]?.document_id)).toEqual([more, less]);
    expect(total).toBe(3);
  });

  it.each([
    '(a+)+$',
    '"',
    "'",
    '"unclosed',
    'NEAR(',
    'a AND NOT',
    '{name}: x',
    '-vacuum',
    'vacuum*',
    '^',
    '\0',
    '%',
    '\ud800',
  ])('of hostile text %j is answered', (query) => {
    expect(ask(index, query)).toMatchObject({ total_nodes: expect.any(Number) });
  });

  it('of 1 MB is answered from its beginning', () => {
    expect(nodeNames(index, `vacuum ${'isolation level '.repeat(65_536)}`)).toContain('Vacuum');
    expect(ask(index, '('.repeat(1_000_000))?.total_nodes).toBe(0);
  });

  it.each(['', ' ', '*', ' * '])('of %j lists the newest', (query) => {
    const found = ask(index, query, { limit: 3 });
    expect(found).toMatchObject({ total_nodes: 11, total_edges: 1 });
    expect(found?.nodes.map(({ name }) => name).sort()).toEqual(['Indexes on expressions', 'Reindexing', 'The']);
  });

  it('orders equal matches by their ids', () => {
    const names = Array.from({ length: 30 }, (_, at) => `same${at}`);
    const same = indexOf([learned(names.map((name) => node(name, 'word')))]);
    const ids = ask(same, 'word')?.nodes.map(({ uuid }) => uuid) ?? [];
    expect(ids).toHaveLength(30);
    expect(ids).toEqual(ids.toSorted());
  });

  it('counts all matches, whatever its limit', () => {
    const names = Array.from({ length: 120 }, (_, at) => `thing ${at}`);
    const many = indexOf([learned(names.map((name) => node(name)))]);
    expect(ask(many, 'thing', { limit: 1 })).toMatchObject({ total_nodes: 120, nodes: { length: 1 } });
  });
});
