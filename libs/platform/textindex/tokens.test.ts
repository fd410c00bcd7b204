import { describe, expect, it } from 'vitest';

import { MAX_QUERY_WORDS, MAX_WORD, queryWordCounts, queryWords, stemOf, wordsOf } from './tokens.ts';

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
    ['C# and C++, c++17 (F#)', ['c#', 'and', 'c++', 'c++', '17', 'f#']],
    ['Notepad++', ['notepad++', 'notepad']],
    ['café++', ['cafe++', 'cafe']],
    ['# Title # a #tag page#anchor i+++j 5# 1++', ['title', 'a', 'tag', 'page', 'anchor', 'i', 'j', '5', '1']],
    ['Wi-Fi', ['wifi', 'wi', 'fi']],
    ['Node.js, .NET', ['nodejs', 'node', 'js', 'net']],
    ['e‑mail CO‐OP AT&T', ['email', 'e', 'mail', 'coop', 'co', 'op', 'att', 'at', 't']],
    ['Größen-Maß', ['grossenmass', 'grossen', 'mass']],
    ['3.14 2026-11-26 10-fold', ['3', '14', '2026', '11', '26', '10fold', '10', 'fold']],
    ['end. Start -- a-- b…', ['end', 'start', 'a', 'b']],
    ['max_size-limit', ['maxsizelimit', 'max_size', 'max', 'size', 'limit']],
    ['hyphen\u00adation zero\u200bwidth \ufeffmark می\u200cخواهم', ['hyphenation', 'zerowidth', 'mark', 'میخواهم']],
    ['数据-库', ['数', '据', '数据', '库']],
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
    expect([...queryWordCounts('How do I create a table? The table!')]).toEqual([
      ['create', 1],
      ['table', 2],
    ]);
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

  it('of a long message are those of its beginning and its end', () => {
    const words = Array.from({ length: 100 }, (_, at) => `word${at}`);
    const half = MAX_QUERY_WORDS / 2;
    expect(queryWords(words.join(' '))).toEqual([...words.slice(0, half), ...words.slice(-half)]);
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
    ['speed', 'speeds', 'speeding', 'speeded'],
    ['need', 'needs', 'needed'],
    ['develop', 'developed', 'development', 'developments', 'developing'],
    ['organize', 'organise', 'organized', 'organising', 'organization', 'organisations'],
    ['move', 'moved', 'moving', 'movement'],
    ['bus', 'buses'],
    ['process', 'processes', 'processing', 'processed'],
    ['replace', 'replacement', 'replaced'],
    ['equip', 'equipment', 'equipped'],
    ['install', 'installation', 'installing', 'installs'],
    ['configure', 'configuration', 'configured'],
    ['connect', 'connection', 'connected', 'connecting'],
    ['argue', 'argued', 'arguing'],
    ['كتاب', 'الكتاب', 'والكتاب'],
  ])('of %s is that of its inflections', (word, ...inflections) => {
    expect(inflections.map(stemOf)).toEqual(inflections.map(() => stemOf(word)));
  });

  it.each([
    ['use', 'us'],
    ['red', 'r'],
    ['ring', 'r'],
    ['speed', stemOf('spe')],
    ['string', stemOf('str')],
    ['moment', stemOf('mom')],
    ['comment', stemOf('com')],
    ['business', stemOf('bus')],
    ['sing', stemOf('s')],
  ])('of %s is not %s', (word, stem) => {
    expect(stemOf(word)).not.toBe(stem);
  });
});
