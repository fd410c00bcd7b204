/** A thread of the pool: runs one task after the other. */
import { parentPort } from 'node:worker_threads';

import { ExtractionError, type ExtractionFailure } from './extraction.ts';
import { extractFacts, readPageWithFacts } from './facts.ts';
import { readPage } from './page.ts';
import { readPdf } from './pdf.ts';

/** What threads are asked, and what they answer. */
export interface Question {
  readonly task: string;
  readonly input: readonly unknown[];
}
export type Answer =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly reason: ExtractionFailure; readonly message: string };

const tasks = { readPage, readPageWithFacts, readPdf, extractFacts } as Record<
  string,
  (...input: unknown[]) => unknown
>;

parentPort?.on('message', ({ task, input }: Question) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- threads have no origin
  void answer(task, input).then((message) => parentPort?.postMessage(message));
});

async function answer(task: string, input: readonly unknown[]): Promise<Answer> {
  try {
    return { ok: true, result: await tasks[task]?.(...input) };
  } catch (error) {
    if (error instanceof ExtractionError) return { ok: false, reason: error.reason, message: error.message };
    return { ok: false, reason: 'unreadable', message: 'The content cannot be read' };
  }
}
