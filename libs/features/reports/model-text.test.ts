import fc from 'fast-check';
import type { Nodes } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { describe, expect, it } from 'vitest';

import { rounds } from '#test/support/rounds.ts';

import { cleanText } from './model-text.ts';

const SOURCES = [
  { name: 'Warehouse handbook', url: 'https://example.org/handbook' },
  { name: 'Staff', url: null },
  { name: 'Gates of Bremen', url: 'https://example.org/gates?a=1&b=2' },
];

const cleaned = (text: string, isCut = false) => cleanText({ text, sources: SOURCES, isCut });

/** Forms of citations that users of other systems report, each with its report where there is one. */
const FORMS: readonly (readonly [string, string, string, readonly number[]])[] = [
  ['a number', 'It opens [1].', 'It opens [1].', [1]],
  ['numbers in the order of the report', 'A [3], b [1], c [3].', 'A [1], b [2], c [1].', [3, 1]],
  ['a list (onyx-dot-app/onyx#1543)', 'It opens [1, 2].', 'It opens [1][2].', [1, 2]],
  ['a list of which some exist (onyx-dot-app/onyx#1543)', 'It opens [1,7].', 'It opens [1].', [1]],
  ['none that exists (onyx-dot-app/onyx#1543)', 'It opens [5,7]. It closes [12].', 'It opens. It closes.', []],
  [
    'zero, as of systems that count from it (infiniflow/ragflow#13474)',
    'It opens [ID:0] [ID:1].',
    'It opens [1].',
    [1],
  ],
  ['brackets side by side', 'It opens [1][2] [3].', 'It opens [1][2] [3].', [1, 2, 3]],
  ['a range', 'It opens [1-3].', 'It opens [1][2][3].', [1, 2, 3]],
  ['a range beyond the sources (nicobailon/pi-web-access#340)', 'It opens [2–9].', 'It opens [1][2].', [2, 3]],
  ['without a space', 'It opens[2].It closes[8]at five.', 'It opens[1].It closes at five.', [2]],
  [
    'double brackets (onyx-dot-app/onyx#1543)',
    'It opens [[1]] and [[2]](https://evil.example/x).',
    'It opens [1] and [2].',
    [1, 2],
  ],
  ['lenticular brackets', 'It opens【1】and【2†source】and【3†L5-L9】.', 'It opens[1]and[2]and[3].', [1, 2, 3]],
  ['numbers of a message', 'It opens【4:0†source】.', 'It opens.', []],
  ['wide brackets', '九時に開く［1］。', '九時に開く[1]。', [1]],
  ['footnotes', 'It opens [^1].\n\n[^1]: Warehouse handbook, page 3', 'It opens [1].', [1]],
  ['footnotes without their text', 'It opens [^2][^1].', 'It opens [1][2].', [2, 1]],
  ['a footnote that does not exist', 'It opens [^9].\n\n[^9]: Somewhere', 'It opens.', []],
  ['links', 'It opens [1](https://example.org/handbook) [2](#source-2).', 'It opens [1] [2].', [1, 2]],
  ['a link that does not exist', 'It opens [9](https://evil.example/?q=secret).', 'It opens.', []],
  ['references with definitions', 'It opens [1].\n\n[1]: https://evil.example "x"', 'It opens [1].', [1]],
  ['a text with a reference', 'It [opens][1].\n\n[1]: https://evil.example', 'It opens[1].', [1]],
  ['escaped', 'It opens \\[1\\].', 'It opens [1].', [1]],
  ['escaped, with an address', 'It opens \\[1\\](https://evil.example)', 'It opens [1] (`https://evil.example`)', [1]],
  ['a definition in disguise', '\\[1\\]: it opens.', '[1] : it opens.', [1]],
  [
    'with a word (linagora/openrag#837)',
    'It opens [Source 1], [sources: 1, 2], [citation:3].',
    'It opens [1], [1][2], [3].',
    [1, 2, 3],
  ],
  ['in parentheses with a word (Mintplex-Labs/anything-llm#2212)', 'It opens (source 1).', 'It opens [1].', [1]],
  ['with a page', 'It opens [1, p. 3].', 'It opens [1].', [1]],
  ['as an exponent', 'It opens<sup>[1]</sup>.', 'It opens[1].', [1]],
  ['in bold', 'It opens **[1]** [**2**].', 'It opens **[1]** [2].', [1, 2]],
  ['in a table', '| a | b |\n|---|---|\n| nine [2] | five [9] |', '| a | b |\n| - | - |\n| nine [1] | five |', [2]],
  ['escaped, one after the other', 'It opens \\[1\\]\\[9\\].', 'It opens [1].', [1]],
];

describe('citations', () => {
  it.each(FORMS)('%s', (_what, text, markdown, cited) => {
    expect(cleaned(text)).toMatchObject({ markdown, cited });
  });

  it.each([
    ['numbers in parentheses', 'It opens (1) at (9).'],
    ['years and times', 'Since \\[2024], from \\[10:30] on.'],
    ['other words in brackets', 'It is \\[sic] here, \\[x] and \\[ ].'],
  ])('are not %s', (_what, text) => {
    expect(cleaned(text)).toMatchObject({ markdown: text, cited: [], removed: { citations: 0 } });
  });

  it('are not in code (onyx-dot-app/onyx#911, HKUDS/DeepTutor#469, diegosouzapw/OmniRoute#14122)', () => {
    const text = 'Read `rows[1]` [1].\n\n```py\nprint(arr[0], arr[12])\n```';
    expect(cleaned(text)).toMatchObject({ markdown: text, cited: [1], removed: { citations: 0 } });
  });

  it('that name no source are counted', () => {
    expect(cleaned('A [1, 8], b [9], c [1].')).toMatchObject({ cited: [1], removed: { citations: 2 } });
  });
});

describe('the text of a model', () => {
  it.each([
    ['an image', 'A ![gate](https://evil.example/p.png?q=1) b.', 'A gate b.'],
    ['an image with a definition', 'A ![gate][x] b.\n\n[x]: https://evil.example/p.png', 'A gate b.'],
    ['an image in a link', 'A [![gate](https://evil.example/p)](https://evil.example) b.', 'A gate b.'],
    [
      'an image as HTML',
      'A <img src="https://evil.example/p?q=1"> b.',
      'A \\<img src="`https://evil.example/p?q=1`"> b.',
    ],
    ['a script', '<script>alert(1)</script>\n\nText.', '\\<script>alert(1)\\</script>\n\nText.'],
    ['an open comment', 'A.\n\n<!-- the rest', 'A.\n\n\\<!-- the rest'],
    ['a comment', 'A.\n\n<!-- hidden -->\n\nB.', 'A.\n\nB.'],
    ['tags of a form', 'A<br>b <b>c</b> m<sup>2</sup>.', 'A b c m2.'],
    ['a link of others', 'See [the page](https://evil.example/?q=1).', 'See the page.'],
    ['a script in a link', 'See [the page](javascript:alert(1)).', 'See the page.'],
    [
      'an address',
      'See https://evil.example/?q=1 or <https://evil.example>.',
      'See `https://evil.example/?q=1` or `https://evil.example`.',
    ],
    ['an address without a scheme', 'See www.evil.example/x.', 'See `www.evil.example/x`.'],
    [
      'an address after an e-mail address',
      'See a@b.io-https://evil.example/?q=1.',
      'See a@`b.io-https://evil.example/?q=1`.',
    ],
    ['an address with tags within', 'See http<b>:</b>//evil.example/x', 'See `http://evil.example/x`'],
    ['an address with a citation within', 'See http[9]://evil.example/x', 'See http ://evil.example/x'],
    ['an address with an image within', 'See w![w](x)w.evil.example/x', 'See `www.evil.example/x`'],
  ])('holds no %s', (_what, text, markdown) => {
    expect(cleaned(text).markdown).toBe(markdown);
  });

  it('keeps links to its sources', () => {
    const text = 'See [the handbook](https://example.org/handbook) and <https://example.org/gates?a=1&b=2>.';
    expect(cleaned(text)).toMatchObject({ markdown: text, removed: { links: 0 } });
  });

  it('counts what it takes out', () => {
    const text = 'A ![x](https://evil.example/p), [b](https://evil.example/b), [c](https://evil.example/c).';
    expect(cleaned(text).removed).toEqual({ citations: 0, links: 2, images: 1 });
  });

  it.each([
    ['a fence that is open', 'A.\n\n```sh\nls [1]', 'A.\n\n```sh\nls [1]\n```'],
    ['a fence that is open in an item', '- A.\n\n  ~~~\n  ls', '- A.\n\n  ```\n  ls\n  ```'],
    ['a fence within a longer one', '````\n```\nls', '````\n```\nls\n````'],
    ['a title', '# Title\n\nA.\n\n## Part\n\nB.', '## Title\n\nA.\n\n### Part\n\nB.'],
    ['a fence around everything', '```markdown\n## Part\n\nA [1].\n```', '## Part\n\nA [1].'],
    ['a fence around everything, with a word before', 'Here it is:\n\n```md\nA [1].\n```', 'Here it is:\n\nA [1].'],
    ['lists, emphasis and tables', '1. *a*\n2. **b**\n\n- [ ] c\n- d_e', '1. *a*\n2. **b**\n\n- [ ] c\n- d_e'],
  ])('is whole: %s', (_what, text, markdown) => {
    expect(cleaned(text).markdown).toBe(markdown);
  });

  it.each([
    ['a section', '## Sources\n\n1. Warehouse handbook\n2. Staff'],
    ['a section of links', '### References\n\n- [1] [Handbook](https://example.org/handbook)\n- [2] Staff'],
    ['a section of inventions', '## Bibliography\n\n- Smith, J. (2020). Warehouses. Journal of Gates.'],
    ['a bold title', '**Sources:**\n\n[1] Warehouse handbook\n[2] Staff'],
    ['a bold title on the line of its list', '**Sources**\n\n* Warehouse handbook, [1]'],
    ['a title with a colon', 'References:\n\n1. Warehouse handbook [1]'],
    ['a line', '---\n\nSources: [1] Warehouse handbook'],
    ['other languages', '## Quellen\n\n1. Warehouse handbook\n\n## 参考文献\n\n- Staff'],
    ['no title', '[1] Warehouse handbook, Opening hours\n[2] Staff'],
    ['no title, and no known names', '---\n\n- [1] Handbook of the firm\n- [2] People'],
    ['footnotes', '[^1]: Warehouse handbook\n[^2]: Staff'],
    ['definitions', '[1]: https://example.org/handbook\n[2]: https://evil.example'],
    ['a table', '## Sources\n\n| # | Source |\n|---|---|\n| 1 | Warehouse handbook |'],
  ])('has no list of sources of its own (uzh-bf/klicker-uzh#5864): %s', (_what, list) => {
    expect(cleaned(`It opens at nine [1].\n\n${list}`)).toMatchObject({
      markdown: 'It opens at nine [1].',
      cited: [1],
    });
  });

  it.each([
    ['sources of a river', '## Sources\n\n- The river rises in the Alps [1].\n- And in the Jura [2].'],
    ['a section after a list', '## Hours\n\n- At nine [1].\n- At five [2].'],
    ['a statement that begins with its citation', '[1] says that the warehouse opens at nine.'],
  ])('keeps %s', (_what, text) => {
    expect(cleaned(text).markdown).toBe(text);
  });

  it('that was cut ends with its last whole part', () => {
    expect(cleaned('A [1].\n\nB [2] and', true).markdown).toBe('A [1].');
    expect(cleaned('A [1].\n\n- B [2].\n- C and', true).markdown).toBe('A [1].\n\n- B [2].');
    expect(cleaned('A [1] and', true)).toMatchObject({ markdown: '', cited: [] });
  });

  it('is read by others as it was cleaned, whatever it was', () => {
    const part = fc.oneof(
      fc.constantFrom(
        '[1]',
        '[9]',
        '[',
        ']',
        '(',
        ')',
        '\\',
        '`',
        '```',
        '~~~',
        '<',
        '>',
        '!',
        '*',
        '**',
        '_',
        '|',
        '\n',
        '\n\n',
        '    ',
        ' ',
        '#',
        '- ',
        '1. ',
        '> ',
        ':',
        '&lt;',
        '&#91;',
        '^',
        '【1†s】',
        'https://evil.example/',
        'javascript:x',
        'www.e.io',
        '<b>',
        '<!--',
        '-->',
        '<script>',
        '![a](https://evil.example)',
        '[a](b)',
        '[a]: b',
        '[^1]',
        '[^1]: x',
        '|-|-|',
        '---',
        'a@b.io',
        'https://example.org/handbook',
      ),
      fc.string({ maxLength: 4 }),
    );
    const text = fc.array(part, { maxLength: 30 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, fc.boolean(), (given, isCut) => {
        const { markdown } = cleaned(given, isCut);
        const report = `# Title\n\n${markdown}\n\n## Sources\n\n1. End`;
        const tree = fromMarkdown(report, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });
        expect(tree.children.at(-1)).toMatchObject({ type: 'list', ordered: true });
        expect(tree.children.at(-2)).toMatchObject({ type: 'heading', depth: 2 });
        expect(foreignIn(tree)).toEqual([]);
      }),
      { numRuns: rounds(600) },
    );
  });

  it.each([
    ['brackets', '['.repeat(40_000)],
    ['emphasis', '*a **b '.repeat(5_700)],
    ['words of sources', 'source '.repeat(5_700)],
    ['blanks', `[1${' '.repeat(39_000)}`],
  ])('is cleaned, however many its %s', (_what, text) => {
    expect(cleaned(text).markdown.length).toBeLessThan(120_000);
  });
});

/** What would show or load something of others. */
function foreignIn(node: Nodes): string[] {
  const isForeign =
    [
      'html',
      'image',
      'imageReference',
      'linkReference',
      'definition',
      'footnoteReference',
      'footnoteDefinition',
    ].includes(node.type) ||
    (node.type === 'link' && !SOURCES.some(({ url }) => url === node.url) && !node.url.startsWith('mailto:'));
  return [
    ...(isForeign ? [JSON.stringify(node)] : []),
    ...('children' in node ? node.children.flatMap(foreignIn) : []),
  ];
}
