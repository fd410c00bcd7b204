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
  ['a table with numbers that are links', `<table><tr><td><a href=x>1</a><td>KEPT ${words}</table>`],
])('keeps %s', (_, html) => {
  const page = readPage(Buffer.from(html), { url: 'https://example.org/', contentType: 'text/html; charset=utf-8' });
  expect(page.text).toContain('KEPT');
});
