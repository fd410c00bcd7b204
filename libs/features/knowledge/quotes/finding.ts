/* What research finds in graphs. Reports store it: the shapes are a storage format, see `report.ts`. */
import { z } from 'zod';

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
export const finding = z.object({
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

export const plan = z.object({
  graphs: z.array(z.object({ id: z.string(), name: z.string() })),
  /** Texts to search for, the query first. */
  questions: z.array(z.string()),
  terms: z.array(term),
});

export type Term = z.infer<typeof term>;
export type Finding = z.infer<typeof finding>;
export type Source = z.infer<typeof source>;
export type Plan = z.infer<typeof plan>;
