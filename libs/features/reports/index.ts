/** Reports: answers to questions, researched in knowledge graphs. One stream, `report-<id>`, for each. */
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { ModelTexts } from './model-texts.ts';
import { reportResearch, reportWriting } from './report.reactor.ts';
import { reportEntity } from './report.read.ts';

export { reportRoutes } from './report.http.ts';
export { reportEntity } from './report.read.ts';

export const reportsModule = { name: 'reports', projections: [reportEntity.projection] } satisfies Module;

/** @param maxTokens estimated tokens of what the model is given, at most */
export function reportReactors({ model, store, log, closeFirst }: Core, knowledge: Knowledge, maxTokens: number) {
  const texts = new ModelTexts();
  closeFirst.push(() => texts.close());
  return [reportResearch(knowledge, model), reportWriting(knowledge, { model, maxTokens, texts, store, log })];
}
