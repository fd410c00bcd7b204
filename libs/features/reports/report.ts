/*
 * Event names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import { type Finding, finding, type Plan, plan } from '#libs/features/knowledge/index.ts';
import { accept, type Decision, type Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy, type EntityState } from '#libs/kernel/entity.ts';
import type { StreamEvent, StreamRevision } from '#libs/kernel/event.ts';
import { tokenUsage } from '#libs/kernel/token-usage.ts';
import { defineEvents, type EventOf, upcast } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `report-<id>`. */
export const REPORT = 'report';

const reportWritten = z.object({
  /** Markdown. */
  results: z.string(),
  method: z.enum(['extractive', 'model']),
  /** The model that has written the report, as its endpoint calls it, or that was to write it. Null: none. */
  model: z.string().nullable(),
  /** Why the model has not written it: a clause for people, without a full stop. Null if it has, and without a model. */
  reason: z.string().nullable(),
  /** Of the model; null if it was not asked. `cost`: in the currency of the configured prices; null without. */
  usage: tokenUsage.nullable(),
  cost: z.number().nullable(),
});

const reportWrittenV1 = z.object({ results: z.string(), method: z.enum(['extractive']) });

export const reportCodec = defineEvents(
  {
    'ReportRequested.v1': z.object({ id: z.string(), query: z.string(), knowledgeGraph: z.string().nullable() }),
    'ResearchPlanned.v1': plan,
    /** The next question was searched for in all graphs. `findings`: those that are relevant and new. */
    'GraphSearched.v1': z.object({ findings: z.array(finding) }),
    /** Edges of nodes were followed, as far as hop `hop`. */
    'EdgesFollowed.v1': z.object({ hop: z.int(), findings: z.array(finding) }),
    /** The research is complete, and the model of this name is to write the report. */
    'WritingStarted.v1': z.object({ model: z.string() }),
    /** Precedes each call of the model. */
    'ModelAsked.v1': z.object({}),
    'ReportWritten.v2': reportWritten,
    /** `reason`: a clause for people, without a full stop. */
    'ReportFailed.v1': z.object({ reason: z.string() }),
    'ReportCancelled.v1': z.object({}),
  },
  {
    upcasters: {
      'ReportWritten.v1': upcast(reportWrittenV1, ({ results }) => ({
        type: 'ReportWritten.v2',
        data: quoted(results),
      })),
    },
  },
);

/** A report that no model was asked for. */
export function quoted(results: string): z.infer<typeof reportWritten> {
  return { results, method: 'extractive', model: null, reason: null, usage: null, cost: null };
}

export type ReportEvent = EventOf<typeof reportCodec>;
type Data<Type extends ReportEvent['type']> = Extract<ReportEvent, { type: Type }>['data'];
export type Written = Data<'ReportWritten.v2'>;

export type Phase = 'queued' | 'researching' | 'writing' | 'ready' | 'failed' | 'cancelled';

export type Report = Data<'ReportRequested.v1'> &
  EntityState & {
    readonly phase: Phase;
    readonly plan: Plan | null;
    /** Questions of the plan that were searched for. */
    readonly searched: number;
    /** Hops that were followed. */
    readonly hops: number;
    /** Dropped when the report ends: only its text and their number remain. */
    readonly findings: readonly Finding[];
    readonly found: number;
    /** The event since which a model is to write it. */
    readonly writingRevision: StreamRevision | null;
    /** How often the model was asked. */
    readonly asked: number;
    readonly written: Written | null;
    readonly failure: string | null;
  };

/** `null` until the report is requested. */
export type ReportState = Report | null;

export const reportFold: Fold<ReportState, ReportEvent> = {
  initialState: null,
  evolve(state, event) {
    if (event.type === 'ReportRequested.v1') return requested(event);
    return state && { ...state, ...changedBy(event), ...changes(state, event) };
  },
};

function requested(event: StreamEvent<Extract<ReportEvent, { type: 'ReportRequested.v1' }>>): Report {
  return {
    ...event.data,
    ...createdBy(event),
    phase: 'queued',
    plan: null,
    searched: 0,
    hops: 0,
    findings: [],
    found: 0,
    writingRevision: null,
    asked: 0,
    written: null,
    failure: null,
  };
}

function changes(report: Report, { type, data, revision }: StreamEvent<ReportEvent>): Partial<Report> {
  switch (type) {
    case 'ReportRequested.v1':
      return {};
    case 'ResearchPlanned.v1':
      return { phase: 'researching', plan: data };
    case 'GraphSearched.v1':
      return { searched: report.searched + 1, ...withFindings(report, data.findings) };
    case 'EdgesFollowed.v1':
      return { hops: data.hop, ...withFindings(report, data.findings) };
    case 'WritingStarted.v1':
      return { phase: 'writing', writingRevision: revision };
    case 'ModelAsked.v1':
      return { asked: report.asked + 1 };
    case 'ReportWritten.v2':
      return { phase: 'ready', written: data, findings: [] };
    case 'ReportFailed.v1':
      return { phase: 'failed', failure: data.reason, findings: [] };
    case 'ReportCancelled.v1':
      return { phase: 'cancelled', findings: [] };
  }
}

function withFindings({ findings, found }: Report, more: readonly Finding[]) {
  return { findings: [...findings, ...more], found: found + more.length };
}

export function hasEnded({ phase }: Report): boolean {
  return phase === 'ready' || phase === 'failed' || phase === 'cancelled';
}

/** A report that has ended stays as it is. */
export function decideCancel(report: Report): Decision<ReportEvent, never> {
  return hasEnded(report) ? accept() : accept({ type: 'ReportCancelled.v1', data: {} });
}
