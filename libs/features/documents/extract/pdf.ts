import { getDocumentProxy, getMeta } from 'unpdf';
import { admitText } from '#libs/kernel/text.ts';

import { ExtractionError, type PdfText } from './extraction.ts';
import { asText, headingOf } from './markdown.ts';
import { withoutInvisible } from './plain-text.ts';

/** Pages beyond these are left out. */
const MAX_PAGES = 500;
/** Characters of text. */
const MAX_TEXT = 5 * 1024 * 1024;
const MAX_TITLE = 1_000;

type PdfPage = Awaited<ReturnType<Awaited<ReturnType<typeof getDocumentProxy>>['getPage']>>;

/**
 * Text of a PDF: a heading for each page, its lines under it, and the values of its forms. Pages that hold only images have
 * no text.
 *
 * @throws ExtractionError `encrypted` or `unreadable`
 */
export async function readPdf(bytes: Uint8Array): Promise<PdfText> {
  // The parser takes possession of the buffer, and takes no `Buffer`.
  const pdf = await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 }).catch((error: unknown) => {
    throw failureOf(error);
  });
  try {
    const pages = new Map<number, string>();
    let [length, read] = [0, 0];
    while (read < Math.min(pdf.numPages, MAX_PAGES) && length < MAX_TEXT) {
      read += 1;
      const text = await textOf(await pdf.getPage(read));
      if (text !== '') pages.set(read, text);
      length += text.length;
    }
    const words = wordsOf(pages.values());
    const parts = [...pages].map(
      ([number, text]) =>
        `${headingOf(2, `Page ${number}`)}\n\n${asText(withWholeWords(text, words), { hasItems: true })}`,
    );
    return {
      title: await titleOf(pdf),
      text: admitText(parts.join('\n\n'), MAX_TEXT),
      pages: { all: pdf.numPages, read, withoutText: read - pages.size },
      characters: Math.min(length, MAX_TEXT),
      truncated: read < pdf.numPages || length > MAX_TEXT,
    };
  } catch (error) {
    throw failureOf(error);
  } finally {
    await pdf.loadingTask.destroy();
  }
}

async function textOf(page: PdfPage): Promise<string> {
  const { items } = await page.getTextContent();
  const lines = items.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join('');
  const values = (await page.getAnnotations()).flatMap(valueOf);
  page.cleanup();
  return [lines, ...values]
    .join('\n')
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n ?/g, '\n')
    .trim();
}

/** Members of annotations that are read here. @see the type of `getAnnotations` in pdf.js, which leaves them open */
interface Annotation {
  readonly subtype?: string;
  readonly hidden?: boolean;
  readonly contentsObj?: { readonly str?: string };
  readonly fieldName?: string;
  readonly alternativeText?: string;
  readonly fieldValue?: unknown;
  readonly password?: boolean;
  readonly pushButton?: boolean;
  readonly checkBox?: boolean;
  readonly exportValue?: string;
  readonly radioButton?: boolean;
  readonly buttonValue?: string;
}

/** The text that a reader of the page sees in a field of a form, or in a text that was typed onto the page. */
function valueOf(annotation: Annotation): string[] {
  const { subtype, hidden, contentsObj } = annotation;
  if (hidden === true) return [];
  const text = subtype === 'FreeText' ? (contentsObj?.str ?? '') : subtype === 'Widget' ? fieldText(annotation) : '';
  return text.trim() === '' ? [] : [text.trim().replace(/\s*[\r\n]\s*/g, ' ')];
}

/** `Name: value`; empty for a field without a value, and for passwords and buttons. */
function fieldText(field: Annotation): string {
  const { fieldValue: value } = field;
  const isUnset =
    field.password === true ||
    field.pushButton === true ||
    (field.checkBox === true && value !== field.exportValue) ||
    (field.radioButton === true && value !== field.buttonValue);
  const values = (Array.isArray(value) ? value : [value]).filter((one) => typeof one === 'string' && one.trim() !== '');
  if (isUnset || values.length === 0) return '';
  const name = (field.alternativeText || field.fieldName || '').trim();
  return (name === '' ? '' : `${name}: `) + values.join(', ');
}

/** Words, also with hyphens inside, in lower case. */
function wordsOf(texts: Iterable<string>): Set<string> {
  const words = new Set<string>();
  for (const text of texts) {
    for (const [word] of withoutInvisible(text).matchAll(/[\p{L}\p{M}]+(?:[-‐][\p{L}\p{M}]+)*/gu))
      words.add(keyOf(word));
  }
  return words;
}

const keyOf = (word: string): string => word.replaceAll('‐', '-').toLowerCase();

/** Before it, a hyphen stands for the second half of a word, as in `Vor- und Nachteile`. */
const CONJUNCTION = /^(?:and|or|to|und|oder|bis|en|of|et|ou|y|e|og|och)$/i;

/**
 * Joins words that a line end divides. A hyphen stays if the word is written with it elsewhere, and where no word is
 * divided at a hyphen: after a capital letter or a digit, and before these.
 */
function withWholeWords(text: string, words: ReadonlySet<string>): string {
  const joined = text
    .replace(/\u00AD\n(?=\p{L})/gu, '')
    .replace(
      /(?<![\p{L}\p{M}\p{N}])([\p{L}\p{M}\p{N}]+)[-‐]\n([\p{L}\p{M}\p{N}]+)/gu,
      (_, before: string, after: string) => {
        if (CONJUNCTION.test(after)) return `${before}-\n${after}`;
        const isDivided = /^.+\p{Ll}\p{M}*$/u.test(before) && /^\p{Ll}/u.test(after);
        const isCompound = words.has(keyOf(`${before}-${after}`)) && !words.has(keyOf(before + after));
        return isDivided && !isCompound ? before + after : `${before}-${after}`;
      },
    );
  return withoutInvisible(joined);
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
