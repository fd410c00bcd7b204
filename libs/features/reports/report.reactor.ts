import { isRelevant, newFindings, Research, type SearchableGraphs, seedsOf } from '#libs/features/knowledge/index.ts';
import type { Model } from '#libs/platform/model/index.ts';
import { reactor, type Process, unlessOvertaken } from '#libs/platform/reactors/index.ts';
import type { EntityId } from '#libs/kernel/ids.ts';
import type { EventStore } from '#libs/platform/eventstore/index.ts';
import type { LifecycleLog } from '#libs/platform/lifecycle/index.ts';
import { streamName } from '#libs/platform/streams/index.ts';
import { hasEnded, quoted, type Report, type ReportEvent, type ReportState, REPORT, type Written } from './report.ts';
import { reportEntity } from './report.read.ts';
import { writeReport, type Researched } from './report.text.ts';
import { askModel } from './model-report.ts';
import type { ModelTexts } from './model-texts.ts';

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

/** Longest time of a step; a model has less. */
const STEP_TIMEOUT_MS = 180_000;
/** Calls of the model for one report: another one if a worker dies before it has recorded what the first came to. */
const MAX_ASKED = 2;

interface WritingParts {
  /** Null if no model is configured any longer. */
  readonly model: Model | null;
  /** Estimated tokens that a model is given at most. */
  readonly maxTokens: number;
  readonly texts: ModelTexts;
  readonly store: Pick<EventStore, 'readStream'>;
  readonly log: Pick<LifecycleLog, 'warn'>;
}

/**
 * Has the model write reports from what the research has found. A reactor of its own, so that a model that takes long holds up
 * no research and no extractive report. Where the model gives no usable text, the report is extractive, and names the reason.
 */
export function reportWriting(knowledge: SearchableGraphs, parts: WritingParts) {
  return reactor<ReportState, ReportEvent>({
    name: 'report-writing',
    on: ['WritingStarted.v1'],
    process: reportEntity.projection,
    startRevision: (report) => report?.writingRevision ?? null,
    isEnded: (report) => report !== null && hasEnded(report),
    async handle(_event, process) {
      const { state: report, organizationId } = process;
      if (report === null) return [];
      if (await new Research(knowledge, organizationId).isGraphGone(report)) return [GRAPH_GONE];
      return [{ type: 'ReportWritten.v2', data: await written(report, process, parts) }];
    },
    async giveUp(report, { reason }) {
      const why = reason === 'deadline' ? 'the model took too long' : 'a step of the model failed repeatedly';
      return report === null ? [] : [{ type: 'ReportWritten.v2', data: await extractive(report, parts.model, why) }];
    },
    limits: { concurrency: 64, stepTimeoutMs: STEP_TIMEOUT_MS },
  });
}

async function written(
  report: Report,
  process: Process<ReportState, ReportEvent>,
  { model, maxTokens, texts, store, log }: WritingParts,
): Promise<Written> {
  if (model === null) return extractive(report, null, 'no model is configured any longer');
  if (report.asked >= MAX_ASKED) {
    return extractive(report, model, 'the model was asked twice, and both times its worker stopped');
  }
  const asked = (await process.recordIntent({ type: 'ModelAsked.v1', data: {} })) ?? report;
  const at = { stream: streamName(REPORT, report.id as EntityId), revision: asked.changedRevision };
  const { organizationId } = process;
  const { traceparent } = process.commandContext('model');
  const answer = await unlessOvertaken(store, at, process.signal, (signal) =>
    askModel(researched(report), { model, maxTokens, texts, organizationId, traceparent }, signal),
  );
  const { usage, cost } = answer;
  if (answer.failure === null) {
    return { results: answer.results, method: 'model', model: answer.model, reason: null, usage, cost };
  }
  const { reason, detail } = answer.failure;
  log.warn({ report: report.id, reason, detail }, 'a model has not written a report');
  return { ...(await extractive(report, model, reason)), usage, cost };
}

async function extractive(report: Report, model: Model | null, reason: string): Promise<Written> {
  return { ...quoted(await writeReport(researched(report), reason)), model: model?.name ?? null, reason };
}

function researched({ query, plan, findings }: Report): Researched {
  if (plan === null) throw new TypeError('a report is written that was not researched');
  return { query, plan, findings };
}
