import { expect, it } from 'vitest';

import { readPage } from './page.ts';

const words = 'This is a paragraph of the page, with enough words to be read as its content. '.repeat(5);
const offices = Array.from({ length: 30 }, (_, n) => `<li><a href=/d${n}>KEPT office ${n}</a></li>`).join('');

// Pages that users of other readers report as read without their content.
it.each([
  ['code in an element that is called toolbar', `<p>${words}</p><div class=code-toolbar><pre>KEPT</pre></div>`],
  ['a page builder of widgets', `<div class="widget widget_sow-editor"><p>KEPT ${words}</p></div>`],
  ['a layout that is named after its sidebar', `<div class=x-sidebar-layout__content><p>KEPT ${words}</p></div>`],
  ['a body that is named after its menu', `<body class="has-localnav menu-open"><p>KEPT ${words}</p>`],
  ['a page in a footer', `<footer><h1>T</h1><p>KEPT ${words}</p></footer>`],
  ['an article without paragraphs', `<article><div>${words}</div><ul><li>KEPT</li></ul></article>`],
  ['a directory above a footer', `<ul>${offices}</ul><footer>(c) 2024 Acme Inc</footer>`],
  [
    'a headline in a banner above the main content',
    `<div class=hero-banner><h1>KEPT</h1></div><main><p>${words}</main>`,
  ],
  [
    'a section of documentation whose anchor is the name of a part of pages (mozilla/readability#807)',
    `<main><section id=the-api><h1>The API</h1><p>${words}</p><section id=pagination><h2>Pagination<a href=#x>¶</a></h2><p>KEPT</section></section>`,
  ],
  [
    'a topic beside others of a page',
    `<main><h1>T</h1><p>${words}</p><div id=your-rights><h2>Your rights</h2></div><div id=cookies><h2>Cookies</h2><p>KEPT</div>`,
  ],
  [
    'a section whose heading has a number, and its anchor has none (Python)',
    `<main><section id=on-unix><h1>2. On Unix</h1><p>${words}</p><section id=related-files><h2>2.3. Related files</h2><p>KEPT</section></section>`,
  ],
  [
    'a section whose anchor has a prefix (Django)',
    `<div id=s-notes><h1>Notes</h1><p>${words}</p><div id=s-date-filter><h2>Date <code>filter</code></h2><p>KEPT</div></div>`,
  ],
  [
    'a signature of code that is a heading (YARD)',
    `<main><p>${words}</p><h3 class="signature first" id=r>KEPT</h3></main>`,
  ],
  [
    'a signature of code that is a heading (ExDoc)',
    `<main><p>${words}</p><div><h1 class=signature>KEPT</h1></div></main>`,
  ],
  [
    'a signature of code within a heading (JSDoc)',
    `<main><p>${words}</p><h4 class=name id=run>run<span class=signature>(KEPT)</span></h4></main>`,
  ],
  ['the signature of an overload (YARD)', `<main><p>${words}</p><ul><li><p class=signature>KEPT</p></ul></main>`],
  ['signatures of code (Javadoc)', `<main><p>${words}</p><div class=member-signature>KEPT</div></main>`],
  ['a heading whose anchor is the name of a part of pages', `<main><p>${words}</p><h2 id=navigation>KEPT</h2>`],
  ['a heading with an anchor within', `<main><p>${words}</p><h2><a name=menu id=menu>KEPT</a></h2>`],
  [
    'a term whose anchor is the name of a part of pages',
    `<p>${words}</p><dl><dt id=sort>KEPT<dd>Order of results</dl>`,
  ],
  ['a table with numbers that are links', `<table><tr><td><a href=x>1</a><td>KEPT ${words}</table>`],
])('keeps %s', (_, html) => {
  const page = readPage(Buffer.from(html), { url: 'https://example.org/', contentType: 'text/html; charset=utf-8' });
  expect(page.text).toContain('KEPT');
});

it.each([
  ['a box that is named after its heading', `<p>${words}</p><div id=newsletter><h2>Newsletter</h2>LEFT OUT</div>`],
  ['a signature below a post (phpBB)', `<main><p>${words}</p><div id=sig1 class=signature>LEFT OUT</div></main>`],
  [
    'a signature below a post (vBulletin)',
    `<main><p>${words}</p><blockquote class="signature restore">LEFT OUT</blockquote></main>`,
  ],
  ['comments below a text', `<main><p>${words}</p><section id=comments><h2>2 comments</h2><p>LEFT OUT</section>`],
  ['links of the place in a site', `<p id=breadcrumbs>LEFT OUT<p>${words}</p>`],
  ['numbers of lines in code', `<p>${words}</p><pre><span class=linenos>LEFT OUT</span>a = 1</pre>`],
  [
    'numbers of lines beside code',
    `<p>${words}</p><table><tr><td class=linenos><pre>LEFT OUT</pre><td><pre>a</pre></table>`,
  ],
])('leaves out %s', (_, html) => {
  const page = readPage(Buffer.from(html), { url: 'https://example.org/', contentType: 'text/html; charset=utf-8' });
  expect(page.text).not.toContain('LEFT OUT');
});

it.each([
  ['of another function (Python)', `<h2>match</h2><p>Finds.<p>${words}<h2>cat</h2><p>Reads.<p>${words}`, 2],
  ['for another kind of screen', `<div><h2>Bikes</h2><p>${words}</div><div><h2>Bikes</h2><p>${words}</div>`, 1],
  ['beside its heading', `<p>${words}<h2>Bikes</h2><p>${words}`, 1],
])('reads what is said again %s', (_, html, times) => {
  const page = readPage(Buffer.from(html), { url: 'https://example.org/', contentType: 'text/html; charset=utf-8' });
  expect(page.text.split(words.trim())).toHaveLength(times + 1);
});
