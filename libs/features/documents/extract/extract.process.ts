/** The bounded process that reads pages, PDFs and documents. */
import { lacksMemory, serveTasks, TaskError } from '#libs/platform/bounded/index.ts';

import { ExtractionError, type PdfText } from './extraction.ts';
import { extractFacts, readPageWithFacts } from './facts.ts';
import { readPage } from './page.ts';

export interface ExtractionTask {
  readonly task: string;
  readonly input: readonly unknown[];
}

/** Its parser is loaded with the first PDF. */
const readPdf = async (bytes: Uint8Array): Promise<PdfText> => (await import('./pdf.ts')).readPdf(bytes);

const tasks = { readPage, readPageWithFacts, readPdf, extractFacts } as Record<
  string,
  (...input: unknown[]) => unknown
>;

serveTasks(
  async ({ task, input }: ExtractionTask) => {
    try {
      return await tasks[task]?.(...input);
    } catch (error) {
      const cause = error instanceof ExtractionError ? (error.cause ?? error) : error;
      if (lacksMemory(cause)) throw new TaskError('memory', '');
      if (error instanceof ExtractionError) throw new TaskError('refused', error.message, { detail: error.reason });
      throw error;
    }
  },
  { maxIdleBytes: 256 * 1024 * 1024 },
);
