import { z } from 'zod';

import { shownFields } from '#libs/kernel/fields.ts';
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

const reportFields = shownFields<Report>()({
  id: z.string(),
  created: [shownTime(), ({ createdAt }) => createdAt],
  modified: shownTime(),
  results: [
    z.string().describe('Markdown with numbered citations; empty until the report is `Ready`'),
    ({ written }) => written?.results ?? '',
  ],
  status: [
    z
      .string()
      .nullable()
      .describe('`Queued`, `Researching`, `Writing` (a model), `Ready`, `Cancelled` or `Failed: <why>`'),
    statusLabel,
  ],
  query: z.string().default(DEFAULT_QUERY),
  knowledge_graph: z.string().nullable().describe('Null: the newest graphs of the organization'),
  progress: [
    z
      .object({ questions: z.int(), searched: z.int(), findings: z.int() })
      .describe('Questions that the query was divided into, those that were searched for, and relevant facts so far'),
    ({ plan, searched, found }) => ({ questions: plan?.questions.length ?? 0, searched, findings: found }),
  ],
  written_by: [
    z
      .object({
        method: z.enum(['model', 'extractive']),
        model: z.string().nullable().describe('That has written it, or was to write it; null without a model'),
        reason: z.string().nullable().describe('Why the model has not written it; null if it has, or was not asked'),
      })
      .nullable()
      .describe('Null until the report is `Ready`'),
    ({ written }) => written && { method: written.method, model: written.model, reason: written.reason },
  ],
  usage: [
    usageSchema.nullable().describe('Of the model; null if it was not asked'),
    ({ written }) => (written?.usage ? usageResource(written.usage) : null),
  ],
  cost: [costSchema, ({ written }) => written?.cost ?? null],
});
export const reportSchema = z.object(reportFields.shape).meta({ id: 'Report' });

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
  resource: reportFields.resource,
  facets: (report) => ({ status: report.phase, knowledge_graph: report.knowledgeGraph }),
  isEnded: hasEnded,
  frame: ({ event }) => FRAMES[event.type],
});

export type Reports = Entities<ReportState, ReportEvent, ReportFacets>;
