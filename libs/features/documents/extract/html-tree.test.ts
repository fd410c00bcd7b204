import fc from 'fast-check';
import { parse } from 'parse5';
import { expect, it } from 'vitest';

import type { HtmlNode } from './html-node.ts';
import { parseHtml } from './html-tree.ts';

interface StandardNode {
  readonly nodeName: string;
  readonly attrs?: readonly { readonly name: string; readonly value: string }[];
  readonly value?: string;
  readonly childNodes?: readonly StandardNode[];
  readonly content?: StandardNode;
}

/** Attributes that the pages below have; a tag without an end makes others of what follows, which are not read. */
const READ = new Set(['class', 'href', 'colspan', 'color', 'id', 'lang']);
const attributes = (list: StandardNode['attrs'] = []) =>
  list
    .filter(({ name }) => READ.has(name))
    .map(({ name, value }) => ` ${name}=${value}`)
    .join('');

/** Elements and texts, without comments: `<p class=x>(text)`. */
function outline(node: StandardNode): string {
  return (
    (node.content ?? node).childNodes
      ?.map((child) => {
        if (child.nodeName === '#comment' || child.nodeName === '#documentType') return '';
        return child.nodeName === '#text'
          ? child.value
          : `<${child.nodeName}${attributes(child.attrs)}>(${outline(child)})`;
      })
      .join('') ?? ''
  );
}

function outlineOf(node: HtmlNode): string {
  let text = '';
  for (let child = node.first; child !== null; child = child.next) {
    if (child.isText) text += child.text;
    else
      text +=
        child.name === '#fragment' ? outlineOf(child) : `<${child.name}${attributes(child.list)}>(${outlineOf(child)})`;
  }
  return text;
}

it('constructs the tree that parse5 constructs with its own nodes', () => {
  const names =
    'a b p div table tbody tr td th caption ul li dl dt dd h1 h2 svg math mi foreignObject title button form nobr ' +
    'font pre textarea script style template body head html br hr img ruby rp rt main address center applet select frameset';
  const name = fc.constantFrom(...names.split(' '));
  const part = fc.oneof(
    { weight: 4, arbitrary: name.map((tag) => `<${tag}>`) },
    { weight: 3, arbitrary: name.map((tag) => `</${tag}>`) },
    name.map((tag) => `<${tag}/>`),
    fc.constantFrom(
      'x',
      ' ',
      '\n',
      '&amp;',
      '&nbsp',
      '&lt<',
      '&#x80;&#0;&#',
      '&notit;',
      '<!-- c -->',
      '<!doctype html>',
      '<!bogus>',
      '<?x?>',
      '</>',
      '< ',
      '\0',
      '\r\n',
      '<![CDATA[',
      '<script><!-- <script>',
    ),
    fc.constantFrom(
      '<p class="a&lt;b">',
      "<a href='x&copy=1'>",
      '<TD COLSPAN=2>',
      '<font color=red>',
      '<p id="&not;&notit;&not=&ampx" lang=&lt>',
    ),
  );
  // The page was cut within a tag.
  const end = fc.constantFrom('', '<s', '<ti', '<x', '<xmp', '<b', '</s', '<p a', '<');
  fc.assert(
    fc.property(fc.array(part, { maxLength: 40 }), end, (parts, rest) => {
      const html = parts.join('') + rest;
      expect(outlineOf(parseHtml(html))).toBe(outline(parse(html) as StandardNode));
    }),
    { numRuns: 2_000 },
  );
});

it('keeps 256 attributes of an element, also of one whose tag is repeated: each is compared with all others', () => {
  const named = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => ` ${prefix}${index}`).join('');
  const kept = (html: string) =>
    parseHtml(html)
      .find(({ name }) => name === 'body')
      ?.list.map(({ name }) => name);
  expect(kept(`<body class=x${named('a', 1_000)}>`)).toHaveLength(256);
  const adopted = kept(`<body class=x>${'<body class=y'}${named('a', 100)}><body${named('b', 1_000)}>`);
  expect(adopted).toHaveLength(256);
  expect(adopted?.slice(0, 102)).toEqual(['class', ...named('a', 100).trim().split(' '), 'b0']);
});
