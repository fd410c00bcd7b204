import { getDocumentProxy, getMeta } from 'unpdf';
import { admitText } from '#libs/kernel/text.ts';

import { ExtractionError, type PdfText } from './extraction.ts';

/** Pages beyond these are left out. */
const MAX_PAGES = 500;
/** Characters of text. */
const MAX_TEXT = 5 * 1024 * 1024;
const MAX_TITLE = 1_000;

/**
 * Text of a PDF: a heading for each page, and its lines under it. Pages that hold only images have no text.
 *
 * @throws ExtractionError `encrypted` or `unreadable`
 */
export async function readPdf(bytes: Uint8Array): Promise<PdfText> {
  // The parser takes possession of the buffer, and takes no `Buffer`.
  const pdf = await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 }).catch((error: unknown) => {
    throw failureOf(error);
  });
  try {
    const pages: string[] = [];
    let length = 0;
    for (let number = 1; number <= Math.min(pdf.numPages, MAX_PAGES) && length < MAX_TEXT; number += 1) {
      const page = await pdf.getPage(number);
      const { items } = await page.getTextContent();
      const lines = items.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join('');
      page.cleanup();
      const text = lines
        .replace(/[^\S\n]+/g, ' ')
        .replace(/ ?\n ?/g, '\n')
        .trim();
      if (text !== '') pages.push(`## Page ${number}\n\n${text}`);
      length += text.length;
    }
    return {
      title: await titleOf(pdf),
      text: admitText(pages.join('\n\n'), MAX_TEXT),
      truncated: pdf.numPages > MAX_PAGES || length > MAX_TEXT,
    };
  } catch (error) {
    throw failureOf(error);
  } finally {
    await pdf.loadingTask.destroy();
  }
}

async function titleOf(pdf: Parameters<typeof getMeta>[0]): Promise<string | null> {
  const { info } = await getMeta(pdf);
  const title: unknown = info['Title'];
  return typeof title === 'string' && title.trim() !== '' ? admitText(title.trim(), MAX_TITLE) : null;
}

function failureOf(error: unknown): ExtractionError {
  const name = error instanceof Error ? error.name : '';
  return name === 'PasswordException'
    ? new ExtractionError('encrypted', 'The PDF is protected by a password', { cause: error })
    : new ExtractionError('unreadable', 'The file is not a readable PDF', { cause: error });
}
