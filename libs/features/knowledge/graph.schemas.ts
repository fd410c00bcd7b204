import { z } from 'zod';

import { idParam, text, timestamp, shownTime } from '#libs/platform/http/index.ts';

export const graphSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    created: shownTime(),
    modified: shownTime().describe('Time of the last change, of its facts too'),
    node_count: z.int().min(0),
    edge_count: z.int().min(0).describe('Edges that are no longer true included'),
    document_count: z.int().min(0).describe('Documents that facts come from'),
  })
  .meta({ id: 'KnowledgeGraph' });

/** A name identifies a node, so it needs a character that can be seen. */
const VISIBLE = /\S/u;
const nameText = (description: string) => text({ min: 1, max: 256, pattern: VISIBLE, description });
const description = text({ max: 4_096, description: 'What the graph is about' });

export const createGraphBody = z
  .object({ name: nameText('Name of the graph'), description: description.nullish() })
  .meta({ id: 'KnowledgeGraphCreate', examples: [{ name: 'Help', description: 'What customers ask' }] });

/** Absent fields stay as they are, null clears. */
export const updateGraphBody = z
  .object({ name: nameText('Name of the graph').optional(), description: description.nullish() })
  .meta({ id: 'KnowledgeGraphUpdate', examples: [{ description: null }] });

export const graphParams = z.object({ id: idParam('Id of the graph') });
export const graphFilters = {
  name: text({ max: 256, description: 'Only graphs of exactly this name' }).optional(),
};

const foundSource = z
  .object({
    document_id: z.string(),
    name: z.string(),
    url: z.string().nullable(),
    passage: z.string().nullable().describe('Text of the document around the fact'),
  })
  .meta({ id: 'KnowledgeSource' });

export const nodeSchema = z
  .object({
    uuid: z.string(),
    name: z.string(),
    summary: z.string().nullable(),
    labels: z.array(z.string()).nullable(),
    created_at: shownTime().nullable(),
    sources: z.array(foundSource),
  })
  .meta({ id: 'KnowledgeNode' });

export const edgeSchema = z
  .object({
    uuid: z.string(),
    fact: z.string(),
    source_node_uuid: z.string(),
    target_node_uuid: z.string(),
    name: z.string().nullable(),
    created_at: shownTime().nullable(),
    valid_at: shownTime().nullable(),
    invalid_at: shownTime().nullable(),
    sources: z.array(foundSource),
  })
  .meta({ id: 'KnowledgeEdge' });

/** With them, the facts of one request always fit into one append. */
const MAX_FACTS = 500;

const factNode = z
  .object({
    name: nameText('Identifies the node in its graph; case and white space do not matter'),
    summary: text({ max: 10_000 }).nullish(),
    labels: z.array(nameText('Kind of thing, such as `Person`')).max(20).nullish(),
  })
  .meta({ id: 'KnowledgeNodeCreate' });

const end = (which: string) => nameText(`${which} of the edge: the name of a node, which may be new, or its uuid`);

const factEdge = z
  .object({
    source: end('Source'),
    target: end('Target'),
    fact: text({ min: 1, max: 4_096, pattern: VISIBLE, description: 'A sentence that states the fact' }),
    name: nameText('The relation, such as `works for`').nullish(),
    valid_at: timestamp({ description: 'When the fact became true' }).nullish(),
    invalid_at: timestamp({ description: 'When it ceased to be true' }).nullish(),
    single_valued: z
      .boolean()
      .nullish()
      .describe('The source has one target by this relation at a time: a later edge with another target ends this one'),
  })
  .meta({ id: 'KnowledgeEdgeCreate' });

export const addFactsBody = z
  .object({
    nodes: z.array(factNode).max(MAX_FACTS).nullish(),
    edges: z.array(factEdge).max(MAX_FACTS).nullish(),
  })
  .meta({ id: 'KnowledgeFactsCreate', examples: [{ nodes: [{ name: 'Van 7', labels: ['Vehicle'] }] }] });
export type AddFactsBody = z.output<typeof addFactsBody>;

export const edgeParams = graphParams.extend({ edge_id: idParam('Id of the edge') });

export const endEdgeBody = z
  .object({ invalid_at: timestamp({ description: 'When the fact ceased to be true. Default: now' }).nullish() })
  .meta({ id: 'KnowledgeEdgeEnd', examples: [{ invalid_at: '2026-01-31T12:00:00Z' }] });

export const factsSchema = z
  .object({ nodes: z.array(nodeSchema), edges: z.array(edgeSchema) })
  .meta({ id: 'KnowledgeFacts' });
