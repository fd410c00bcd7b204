/** Reports: answers to questions, researched in knowledge graphs. One stream, `report-<id>`, for each. */
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import { Entities } from '#libs/platform/entity/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { ModelTexts } from './model-texts.ts';
import { reportRoutes } from './report.http.ts';
import { reportResearch } from './report.reactor.ts';
import { reportWriting } from './report.writing.ts';
import { reportEntity } from './report.read.ts';

export const reportsModule = {
  name: 'reports',
  projections: [reportEntity.projection],
  create(core: Core, { knowledge }: { readonly knowledge: Knowledge }) {
    const reports = new Entities(reportEntity, core);
    const { model, modelContextTokens: maxTokens, store, log } = core;
    const texts = new ModelTexts();
    core.closeFirst.push(() => texts.close());
    return {
      routes: (app: HttpApp) => reportRoutes(app, reports, knowledge),
      reactors: [reportResearch(knowledge, model), reportWriting(knowledge, { model, maxTokens, texts, store, log })],
    };
  },
} satisfies Module;
