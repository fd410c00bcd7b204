/** Main content of the pages of a collection, by one reader: Parley, or Mozilla's Readability on linkedom. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom';
import { z } from 'zod';

import { readPage } from '#libs/features/documents/extract/page.ts';

import { answerTasks } from '../child-process.ts';
import type { ExtractTask, ReaderName, ReaderScore } from '../extract-table.ts';

const truthSchema = z.object({
  url: z.string().catch('about:blank'),
  ground_truth: z.object({ main_content: z.string().catch('') }),
  _internal: z.object({ page_type: z.object({ primary: z.string() }) }),
});

interface CollectedPage {
  readonly html: Buffer;
  readonly url: string;
  readonly type: string;
  readonly truth: string;
}

const readers = {
  parley: ({ html, url }: CollectedPage) => readPage(html, { url, contentType: 'text/html' }).text,
  readability: ({ html }: CollectedPage) => {
    const { document } = parseHTML(html.toString());
    return new Readability(document).parse()?.textContent ?? '';
  },
};

let reader: ReaderName;
let pages: readonly CollectedPage[];

answerTasks<ExtractTask, ReaderScore | { readonly pages: number }>(async (task) => {
  if ('page' in task) return scoreOf(pages[task.page]!);
  const { folder } = task;
  reader = task.reader;
  pages = await Promise.all((await readdir(join(folder, 'html'))).toSorted().map((file) => pageOf(folder, file)));
  // Compiles what the reader runs.
  for (const page of pages.slice(0, 100)) attempt(readers[reader], page);
  return { pages: pages.length };
});

function scoreOf(page: CollectedPage): ReaderScore {
  const before = process.cpuUsage();
  const text = attempt(readers[reader], page);
  const { user, system } = process.cpuUsage(before);
  const ms = (user + system) / 1_000;
  return { reader, type: page.type, ms, ...compare(wordsOf(withoutMarkdown(text)), wordsOf(page.truth)) };
}

async function pageOf(folder: string, file: string): Promise<CollectedPage> {
  const json: unknown = JSON.parse(
    await readFile(join(folder, 'ground-truth', file.replace('.html.gz', '.json')), 'utf8'),
  );
  const { url, ground_truth: truth, _internal: internal } = truthSchema.parse(json);
  const html = gunzipSync(await readFile(join(folder, 'html', file)));
  return { html, url, type: internal.page_type.primary, truth: truth.main_content };
}

/** Readability throws for some pages. */
function attempt(read: (page: CollectedPage) => string, page: CollectedPage): string {
  try {
    return read(page);
  } catch {
    return '';
  }
}

function withoutMarkdown(text: string): string {
  return text.replace(/!?\[([^\]\n]*)\]\([^)\s]*\)/g, '$1').replace(/[\\`*|#>~]+/g, ' ');
}

function wordsOf(text: string): Map<string, number> {
  const words = new Map<string, number>();
  for (const [word] of text
    .replace(/[\u00AD\u200B\u2060\uFEFF]/g, '')
    .toLowerCase()
    .matchAll(/[\p{L}\p{N}_]+/gu))
    words.set(word, (words.get(word) ?? 0) + 1);
  return words;
}

/** Over the multiset of words. */
function compare(found: ReadonlyMap<string, number>, truth: ReadonlyMap<string, number>) {
  const size = (words: ReadonlyMap<string, number>) => [...words.values()].reduce((sum, count) => sum + count, 0);
  const common = [...found].reduce((sum, [word, count]) => sum + Math.min(count, truth.get(word) ?? 0), 0);
  const [all, wanted] = [size(found), size(truth)];
  const precision = all === 0 ? Number(wanted === 0) : common / all;
  const recall = wanted === 0 ? 1 : common / wanted;
  return {
    precision,
    recall,
    f1: common === 0 ? Number(all === 0 && wanted === 0) : (2 * precision * recall) / (precision + recall),
  };
}
