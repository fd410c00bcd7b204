import { isRelevant, newFindings, Research, type SearchableGraphs, seedsOf } from '#libs/features/knowledge/index.ts';
import type { Model } from '#libs/platform/model/index.ts';
import { reactor } from '#libs/platform/reactors/index.ts';

import { hasEnded, quoted, type Report, type ReportEvent, type ReportState } from './report.ts';
import { reportEntity } from './report.read.ts';
import { writeReport } from './report.text.ts';

const MAX_HOPS = 2;
/** Nodes whose edges a hop follows. */
const SEEDS = 6;

export const GRAPH_GONE: ReportEvent = {
  type: 'ReportFailed.v1',
  data: { reason: 'the knowledge graph was deleted' },
};

/**
 * Researches in graphs: plans, searches for each question, follows edges. Each step is one event, which triggers the next,
 * so a step that a worker did not finish is done by another one. The last one writes the report, unless a model is to
 * write it from what was found: see `reportWriting`.
 *
 * @param model null: reports are extractive
 */
export function reportResearch(knowledge: SearchableGraphs, model: Pick<Model, 'name'> | null) {
  return reactor<ReportState, ReportEvent>({
    name: 'report-research',
    on: ['ReportRequested.v1', 'ResearchPlanned.v1', 'GraphSearched.v1', 'EdgesFollowed.v1'],
    process: reportEntity.projection,
    isEnded: (report) => report !== null && (hasEnded(report) || report.phase === 'writing'),
    async handle(_event, { state: report, organizationId }) {
      if (report === null) return [];
      const research = new Research(knowledge, organizationId);
      if (await research.isGraphGone(report)) return [GRAPH_GONE];
      return [await nextStep(research, report, model)];
    },
    giveUp(_report, { reason }) {
      const why = reason === 'deadline' ? 'the research took too long' : 'a step of the research failed repeatedly';
      return [{ type: 'ReportFailed.v1', data: { reason: why } }];
    },
    limits: { concurrency: 8 },
  });
}

async function nextStep(research: Research, report: Report, model: Pick<Model, 'name'> | null): Promise<ReportEvent> {
  const { plan, searched, hops, findings } = report;
  if (plan === null) return { type: 'ResearchPlanned.v1', data: await research.plan(report) };
  const question = plan.questions[searched];
  if (question !== undefined) {
    const found = await research.search(plan, question);
    const relevant = found.filter((one) => isRelevant(one, plan));
    return { type: 'GraphSearched.v1', data: { findings: newFindings(findings, relevant, plan) } };
  }
  const hop = hops + 1;
  const seeds = hop > MAX_HOPS ? [] : seedsOf(findings, hop, SEEDS);
  if (seeds.length > 0) {
    const found = await research.follow(plan, seeds, hop);
    return { type: 'EdgesFollowed.v1', data: { hop, findings: newFindings(findings, found, plan) } };
  }
  // A model that is given nothing can cite nothing.
  if (model !== null && findings.length > 0) return { type: 'WritingStarted.v1', data: { model: model.name } };
  return { type: 'ReportWritten.v2', data: quoted(await writeReport({ ...report, plan })) };
}
