/*
 * Event names and shapes are the storage format: what was written with them stays in the log for ever.
 * Never change one in place. A new version is a new type, and the old one gets an upcaster.
 */
import { z } from 'zod';

import { accept } from '#libs/kernel/decider.ts';
import type { Decision, Fold } from '#libs/kernel/decider.ts';
import { changedBy, createdBy } from '#libs/kernel/entity.ts';
import type { EntityState } from '#libs/kernel/entity.ts';
import type { StreamEvent } from '#libs/kernel/event.ts';
import { defineEvents } from '#libs/platform/eventstore/index.ts';
import type { EventOf } from '#libs/platform/eventstore/index.ts';

/** Category of the streams, `report-<id>`. */
export const REPORT = 'report';

/** A word of the query. */
const term = z.object({
  word: z.string(),
  /** Greater for words that fewer facts have; greatest for one that no fact has. */
  weight: z.number(),
  /** `similar`: only words that it may be misspelled from occur. */
  found: z.enum(['exact', 'similar', 'none']),
  /** For `similar`: the word that occurs. */
  correction: z.string().nullable(),
});

const source = z.object({
  documentId: z.string(),
  name: z.string(),
  url: z.string().nullable(),
  passage: z.string().nullable(),
});

/** A node or an edge that the research found. */
const finding = z.object({
  graphId: z.string(),
  uuid: z.string(),
  /** Of an edge: of its source node, if that is known. */
  name: z.string(),
  labels: z.array(z.string()),
  /** Summary of a node; null without one. */
  summary: z.string().nullable(),
  /** Null for a node. */
  edge: z.object({ fact: z.string(), name: z.string().nullable(), target: z.string() }).nullable(),
  sources: z.array(source),
  /** Edges between it and a node that a search found: 0 for what a search found itself. */
  hop: z.int(),
});

export const reportCodec = defineEvents({
  'ReportRequested.v1': z.object({ id: z.string(), query: z.string(), knowledgeGraph: z.string().nullable() }),
  /** `questions`: texts to search for, the query first. */
  'ResearchPlanned.v1': z.object({
    graphs: z.array(z.object({ id: z.string(), name: z.string() })),
    questions: z.array(z.string()),
    terms: z.array(term),
  }),
  /** The next question was searched for in all graphs. `findings`: those that are relevant and new. */
  'GraphSearched.v1': z.object({ findings: z.array(finding) }),
  /** Edges of nodes were followed, as far as hop `hop`. */
  'EdgesFollowed.v1': z.object({ hop: z.int(), findings: z.array(finding) }),
  /** `results`: Markdown. `method`: how it was written. */
  'ReportWritten.v1': z.object({ results: z.string(), method: z.enum(['extractive']) }),
  /** `reason`: a clause for people, without a full stop. */
  'ReportFailed.v1': z.object({ reason: z.string() }),
  'ReportCancelled.v1': z.object({}),
});

export type ReportEvent = EventOf<typeof reportCodec>;
export type Term = z.infer<typeof term>;
export type Finding = z.infer<typeof finding>;
export type Source = z.infer<typeof source>;
type Data<Type extends ReportEvent['type']> = Extract<ReportEvent, { type: Type }>['data'];
export type Plan = Data<'ResearchPlanned.v1'>;

export type Phase = 'queued' | 'researching' | 'ready' | 'failed' | 'cancelled';

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
    readonly results: string;
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
    results: '',
    failure: null,
  };
}

function changes(report: Report, { type, data }: StreamEvent<ReportEvent>): Partial<Report> {
  switch (type) {
    case 'ReportRequested.v1':
      return {};
    case 'ResearchPlanned.v1':
      return { phase: 'researching', plan: data };
    case 'GraphSearched.v1':
      return { searched: report.searched + 1, ...withFindings(report, data.findings) };
    case 'EdgesFollowed.v1':
      return { hops: data.hop, ...withFindings(report, data.findings) };
    case 'ReportWritten.v1':
      return { phase: 'ready', results: data.results, findings: [] };
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
  return phase !== 'queued' && phase !== 'researching';
}

/** A report that has ended stays as it is. */
export function decideCancel(report: Report): Decision<ReportEvent, never> {
  return hasEnded(report) ? accept() : accept({ type: 'ReportCancelled.v1', data: {} });
}
