import { describe, expect, it } from 'vitest';

import { MAX_QUERY_WORDS, MAX_WORD, queryWords, stemOf, wordsOf } from './tokens.ts';

describe('words of a text', () => {
  it.each([
    ['Café ＦＵＬＬ Straße ΣΊΣΥΦΟΣ', ['cafe', 'full', 'strasse', 'σισυφος']],
    ['shared_buffers = 128MB', ['shared_buffers', 'shared', 'buffers', '128mb']],
    ['__proto__ _', ['proto']],
    ['数据库 DB', ['数', '据', '库', '数据', '据库', 'db']],
    ['データ', ['デ', 'ー', 'タ', 'デー', 'ータ']],
    ['الكِتاب', ['الكتاب']],
    ['👩‍🚀 ok', ['👩', '🚀', 'ok']],
    ['!?… "\0', []],
    ['"quoted" NEAR( a* -b ^c', ['quoted', 'near', 'a', 'b', 'c']],
    ['a\ud800b', ['a', 'b']],
  ])('%j gives %j', (text, words) => {
    expect(wordsOf(text)).toEqual(words);
  });

  it('that are very long are cut', () => {
    expect(wordsOf('x'.repeat(1_000))).toEqual(['x'.repeat(MAX_WORD)]);
  });
});

describe('words of a query', () => {
  it('are each once, without stop words unless there are no others', () => {
    expect(queryWords('How do I create a table? The table!')).toEqual(['create', 'table']);
    expect(queryWords('the of and')).toEqual(['the', 'of', 'and']);
  });

  it.each([
    ["What's vacuum?", ['vacuum']],
    ['what’s new', ['new']],
    ["Ada's index, and I'm done", ['ada', 'index', 'done']],
    ["Why doesn't it start?", ['start']],
    ["don't", ['don', 't']],
    ["l'homme d'accord O'Neil", ['l', 'homme', 'd', 'accord', 'o', 'neil']],
  ])('of %j are without the ends of contractions', (query, words) => {
    expect(queryWords(query)).toEqual(words);
  });

  it('are pairs of characters in a script without spaces', () => {
    expect(queryWords('数据库')).toEqual(['数据', '据库']);
    expect(queryWords('数')).toEqual(['数']);
  });

  it('are limited, whatever the length of the query', () => {
    const words = Array.from({ length: 100_000 }, (_, at) => `word${at}`).join(' ');
    expect(queryWords(words)).toHaveLength(MAX_QUERY_WORDS);
  });
});

describe('the stem of a word', () => {
  it.each([
    ['index', 'indexes', 'indexing', 'indexed'],
    ['create', 'creates', 'created', 'creating', 'creation'],
    ['query', 'queries'],
    ['table', 'tables'],
    ['class', 'classes'],
    ['stop', 'stopped', 'stopping', 'stops'],
    ['كتاب', 'الكتاب', 'والكتاب'],
  ])('of %s is that of its inflections', (word, ...inflections) => {
    expect(inflections.map(stemOf)).toEqual(inflections.map(() => stemOf(word)));
  });

  it.each([
    ['use', 'us'],
    ['red', 'r'],
    ['ring', 'r'],
  ])('of %s is not %s', (word, stem) => {
    expect(stemOf(word)).not.toBe(stem);
  });
});
