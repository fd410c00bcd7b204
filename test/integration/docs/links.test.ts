import { readdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../../..');

async function pagesOf(folder: string): Promise<string[]> {
  const names = await readdir(join(root, folder));
  return names.filter((name) => name.endsWith('.md')).map((name) => join(folder, name));
}

/** The links of a page to files of this repository, without code, as paths from the root and an anchor. */
function linksOf(page: string, text: string): { readonly path: string; readonly anchor: string }[] {
  const links = text
    .replaceAll(/^```[^]*?^```|`[^`\n]*`/gm, '')
    .matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)/g);
  return [...links].map(([, target = '', anchor = '']) => ({
    path: target === '' ? page : join(dirname(page), target),
    anchor,
  }));
}

/** As GitHub makes them of headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

it('links between pages lead to files and headings that exist', async () => {
  const folders = ['', 'docs', 'docs/decisions', 'libs/client', 'infra/embedded-eventstore', 'test/images'];
  const pages = (await Promise.all(folders.map(pagesOf))).flat();
  const texts = new Map<string, string>();
  for (const page of pages) texts.set(page, await readFile(join(root, page), 'utf8'));
  const broken: string[] = [];
  for (const [page, text] of texts) {
    for (const { path, anchor } of linksOf(page, text)) {
      const isThere = await stat(join(root, path)).then(
        () => true,
        () => false,
      );
      const target = texts.get(path);
      const leads = isThere && (anchor === '' || target === undefined || anchorsOf(target).includes(anchor));
      if (!leads) broken.push(`${page}: ${path}#${anchor}`);
    }
  }
  expect(broken).toEqual([]);
});

it('the index of decisions names each with its title, and with what its status says beyond "accepted"', async () => {
  const index = await readFile(join(root, 'docs/decisions/README.md'), 'utf8');
  const pages = (await pagesOf('docs/decisions')).filter((page) => /\/\d{4}-/.test(page));
  const expected = await Promise.all(
    pages.map(async (page) => {
      const text = await readFile(join(root, page), 'utf8');
      const [, title = ''] = /^# (\d+\. .*)$/m.exec(text) ?? [];
      const [, status = ''] = /^Status: ([^]*?)(?=\n\n|$(?![^]))/m.exec(text) ?? [];
      const note = status
        .replaceAll('\n', ' ')
        .trim()
        .replace(/\.$/, '')
        .replace(/^accepted[.;:]?\s*/i, '');
      const said = note === '' ? '' : ` (${note.charAt(0).toLowerCase()}${note.slice(1)})`;
      if (status === '') throw new Error(`${page} has no status`);
      return `- [${title}](${page.slice('docs/decisions/'.length)})${said}`;
    }),
  );
  expect(
    index
      .split('\n')
      .filter((line) => line.startsWith('- '))
      .toSorted(),
  ).toEqual(expected.toSorted());
});

it('the list of pages names each page of docs', async () => {
  const list = await readFile(join(root, 'docs/README.md'), 'utf8');
  const named = new Set(linksOf('docs/README.md', list).map(({ path }) => path));
  const pages = (await pagesOf('docs')).filter((page) => page !== 'docs/README.md');
  expect(pages.filter((page) => !named.has(page))).toEqual([]);
});
