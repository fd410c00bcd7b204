import { readFile, writeFile } from 'node:fs/promises';

import { type PDFiumDocument, PDFiumLibrary } from '@hyzyla/pdfium';

import { ExtractionError, readPdf } from '#libs/features/documents/extract/index.ts';

import {
  type InspectedPreview,
  type InspectedText,
  InspectionError,
  type Measures,
  NOT_MEASURED,
} from './file-inspection.ts';
import { PREVIEW_PIXELS, writePixels } from './inspect.image.ts';

const library = await PDFiumLibrary.init();

interface InspectedPdf {
  readonly measures: Measures;
  readonly preview: InspectedPreview | null;
}

/**
 * The first page, and the count of all. A PDF that is protected by a password has neither.
 *
 * @throws errors for damaged files
 */
export async function inspectPdf(path: string, previewPath: string): Promise<InspectedPdf> {
  const document = await library.loadDocument(await readFile(path)).catch((error: unknown) => {
    if (error instanceof Error && /password|security/i.test(error.message)) return null;
    throw error;
  });
  if (document === null) return { measures: NOT_MEASURED, preview: null };
  try {
    return await firstPage(document, previewPath);
  } finally {
    document.destroy();
  }
}

async function firstPage(document: PDFiumDocument, previewPath: string): Promise<InspectedPdf> {
  const pages = document.getPageCount();
  const page = document.getPage(0);
  const { originalWidth, originalHeight } = page.getOriginalSize();
  const longest = Math.max(originalWidth, originalHeight);
  if (pages === 0 || !(Math.min(originalWidth, originalHeight) > 0)) throw new InspectionError('the PDF has no pages');
  const size = (points: number): number => Math.max(1, Math.round((points * PREVIEW_PIXELS) / longest));
  const [width, height] = [size(originalWidth), size(originalHeight)];
  const { data } = await page.render({ render: 'bitmap', width, height, renderFormFields: true });
  const preview = await writePixels(data, width, height, previewPath);
  const measures = {
    ...NOT_MEASURED,
    width: Math.round(originalWidth),
    height: Math.round(originalHeight),
    pages,
  };
  return { measures, preview };
}

/** @throws InspectionError */
export async function writePdfText(path: string, textPath: string): Promise<InspectedText> {
  try {
    const { text, title, truncated } = await readPdf(await readFile(path));
    await writeFile(textPath, text);
    return { contentType: 'text/markdown', title, truncated };
  } catch (error) {
    if (!(error instanceof ExtractionError)) throw error;
    const isProtected = error.reason === 'encrypted';
    throw new InspectionError(isProtected ? 'the PDF is protected by a password' : 'the text of the PDF is damaged');
  }
}
