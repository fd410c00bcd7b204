import { describe, expect, it } from 'vitest';

import { queryWords } from '#libs/platform/textindex/index.ts';

import { highlightsOf } from './highlights.ts';

/** With matches in brackets. */
function marked(text: string, query: string): string[] | null {
  const found = highlightsOf([{ type: 'text', text }], new Set(queryWords(query)));
  return found && found.map(({ parts }) => parts.map((one) => (one.is_match ? `[${one.text}]` : one.text)).join(''));
}

describe('highlights', () => {
  it.each([
    ['The rocket is late', 'rocket', 'The [rocket] is late'],
    ['ROCKET, rocket.', 'rocket', '[ROCKET], [rocket].'],
    ['<b onclick="x">rocket</b> & <script>', 'rocket', '<b onclick="x">[rocket]</b> & <script>'],
    ['Cafe\u0301 and café', 'café', '[Cafe\u0301] and [café]'],
    ['a soft\u00adhyphen', 'softhyphen', 'a [soft\u00adhyphen]'],
    ['on Wi-Fi now', 'wifi', 'on [Wi-Fi] now'],
    ['node.js rocks', 'node', '[node].js rocks'],
    ['we use C++ here', 'C++', 'we use [C++] here'],
    ['Straße', 'strasse', '[Straße]'],
    ['ﬁne ＡＢＣ', 'abc', 'ﬁne [ＡＢＣ]'],
    ['还有可能是定期检修', '可能', '还有[可能]是定期检修'],
    ['我的爸爸肚子很餓', '餓', '我的爸爸肚子很[餓]'],
    ['東京タワー', '東京', '[東京]タワー'],
    ['a 👨‍👩‍👧‍👧 b', '👨', 'a [👨‍👩‍👧‍👧] b'],
    ['well 👍🏽 done', '👍', 'well [👍🏽] done'],
    ['𝚫𝑣 rocket 📱', 'rocket', '𝚫𝑣 [rocket] 📱'],
    ['अनुच्छेद की बात', 'अनुच्छेद', '[अनुच्छेद] की बात'],
  ])('of %j by %j are %j', (text, query, expected) => {
    expect(marked(text, query)).toEqual([expected]);
  });

  it('are null where no word matches, and for content without text', () => {
    expect(marked('The rocket is late', 'moon')).toBeNull();
    expect(highlightsOf([], new Set(['moon']))).toBeNull();
    expect(highlightsOf([{ type: 'tool_call', tool_name: 'moon', tool_args: {} }], new Set(['moon']))).toBeNull();
  });

  it('of long texts are excerpts that say where they are, and never split a character', () => {
    const text = `${'👨‍👩‍👧‍👧'.repeat(80)} rocket ${'é'.repeat(600)} rocket`;
    const found = highlightsOf([{ type: 'text', text }], new Set(['rocket'])) ?? [];
    expect(found).toHaveLength(2);
    for (const { offset, parts, content_index: item, member } of found) {
      const excerpt = parts.map((one) => one.text).join('');
      expect([item, member]).toEqual([0, 'text']);
      expect(text.slice(offset, offset + excerpt.length)).toBe(excerpt);
      expect(excerpt.isWellFormed()).toBe(true);
      expect(excerpt).not.toMatch(/^\u200d|^\p{M}|\u200d$/u);
      expect(parts.filter((one) => one.is_match).map((one) => one.text)).toEqual(['rocket']);
      expect(excerpt.length).toBeLessThan(300);
    }
  });

  it('of a text full of matches are its first three excerpts', () => {
    for (const word of ['rocket ', '火箭。']) {
      const text = word.repeat(5_000);
      const found = highlightsOf([{ type: 'text', text }], new Set(queryWords(word))) ?? [];
      const shown = found.map(({ parts }) => parts.map((one) => one.text).join('')).join('');
      expect(found).toHaveLength(3);
      expect(text.startsWith(shown.slice(0, 240))).toBe(true);
      for (const { parts } of found) expect(parts.filter((one) => one.is_match).length).toBeGreaterThan(20);
    }
  });

  it('name the member of the item', () => {
    const content = [
      { type: 'text', text: 'see' },
      { type: 'media', meta_data: { name: 'plan.pdf', description: 'The rocket' } },
      { type: 'custom_content', alt_text: 'a rocket card', data: { rocket: 'rocket' } },
    ];
    const found = highlightsOf(content, new Set(['rocket'])) ?? [];
    expect(found.map((one) => [one.content_index, one.member])).toEqual([
      [1, 'meta_data.description'],
      [2, 'alt_text'],
    ]);
  });
});
