import { z } from 'zod';

import { type Entities, entity } from '#libs/platform/entity/index.ts';
import { costSchema, usageResource, usageSchema } from '#libs/platform/model/index.ts';
import { shownTime } from '#libs/platform/http/index.ts';

import {
  hasEnded,
  REPORT,
  type Report,
  reportCodec,
  type ReportEvent,
  reportFold,
  type ReportState,
} from './report.ts';

/** Section 2.7 of the contract. */
export const DEFAULT_QUERY = "What's going on in Grand Rapids, Michigan?";

export const reportSchema = z
  .object({
    id: z.string(),
    created: shownTime(),
    modified: shownTime(),
    results: z.string().describe('Markdown with numbered citations; empty until the report is `Ready`'),
    status: z
      .string()
      .nullable()
      .describe('`Queued`, `Researching`, `Writing` (a model), `Ready`, `Cancelled` or `Failed: <why>`'),
    query: z.string().default(DEFAULT_QUERY),
    knowledge_graph: z.string().nullable().describe('Null: the newest graphs of the organization'),
    progress: z
      .object({ questions: z.int(), searched: z.int(), findings: z.int() })
      .describe('Questions that the query was divided into, those that were searched for, and relevant facts so far'),
    written_by: z
      .object({
        method: z.enum(['model', 'extractive']),
        model: z.string().nullable().describe('That has written it, or was to write it; null without a model'),
        reason: z.string().nullable().describe('Why the model has not written it; null if it has, or was not asked'),
      })
      .nullable()
      .describe('Null until the report is `Ready`'),
    usage: usageSchema.nullable().describe('Of the model; null if it was not asked'),
    cost: costSchema,
  })
  .meta({ id: 'Report' });

function resource(report: Report): z.infer<typeof reportSchema> {
  const { written } = report;
  return {
    id: report.id,
    created: report.createdAt,
    modified: report.modified,
    results: written?.results ?? '',
    status: statusLabel(report),
    query: report.query,
    knowledge_graph: report.knowledgeGraph,
    progress: { questions: report.plan?.questions.length ?? 0, searched: report.searched, findings: report.found },
    written_by: written && { method: written.method, model: written.model, reason: written.reason },
    usage: written?.usage ? usageResource(written.usage) : null,
    cost: written?.cost ?? null,
  };
}

const LABELS = {
  queued: 'Queued',
  researching: 'Researching',
  writing: 'Writing',
  ready: 'Ready',
  cancelled: 'Cancelled',
} as const;

function statusLabel({ phase, failure }: Report): string {
  return phase === 'failed' ? `Failed: ${failure}` : LABELS[phase];
}

type ReportFacets = { readonly status: string; readonly knowledge_graph: string | null };

const FRAMES: Readonly<Record<ReportEvent['type'], string>> = {
  'ReportRequested.v1': 'report.created',
  'ResearchPlanned.v1': 'report.progress',
  'GraphSearched.v1': 'report.progress',
  'EdgesFollowed.v1': 'report.progress',
  'WritingStarted.v1': 'report.progress',
  'ModelAsked.v1': 'report.progress',
  'ReportWritten.v2': 'report.ready',
  'ReportFailed.v1': 'report.failed',
  'ReportCancelled.v1': 'report.cancelled',
};

export const reportEntity = entity<ReportState, ReportEvent, ReportFacets>({
  category: REPORT,
  version: 3,
  codec: reportCodec,
  fold: reportFold,
  resource,
  facets: (report) => ({ status: report.phase, knowledge_graph: report.knowledgeGraph }),
  isEnded: hasEnded,
  frame: ({ after, event }) => ({ type: FRAMES[event.type], json: JSON.stringify(after && resource(after)) }),
});

export type Reports = Entities<ReportState, ReportEvent, ReportFacets>;
