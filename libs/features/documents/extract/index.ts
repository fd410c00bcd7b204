import type { PdfText } from './extraction.ts';

export * from './extraction.ts';
export { decodeText } from './charset.ts';
export { isGeneric, isPdf, shownType } from './file-type.ts';
export { refreshTarget } from './page-forward.ts';
export { ExtractionPool } from './extraction-pool.ts';

/** As in `pdf.ts`. Loads its parser with the first call, so that only processes that read a PDF have it in memory. */
export async function readPdf(bytes: Uint8Array): Promise<PdfText> {
  const pdf = await import('./pdf.ts');
  return pdf.readPdf(bytes);
}
