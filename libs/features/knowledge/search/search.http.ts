import { z } from 'zod';

import {
  type HttpApp,
  notFound,
  queryInteger,
  queryPointInHistory,
  routesTagged,
  text,
  timestamp,
} from '#libs/platform/http/index.ts';

import { edgeSchema, graphParams, nodeSchema } from '../graph.schemas.ts';
import { MAX_LIMIT, type Question, RANKINGS, type SearchResult } from './graph-questions.ts';

const searchQuery = z.object({
  query: text({
    description:
      'Words to search for, in any language; inflections, longer words and slight misspellings match as well. `*` or nothing: the newest facts',
  }).default('*'),
  limit: queryInteger({ min: 1, max: MAX_LIMIT, default: 10, description: 'Most nodes, and most edges, to answer' }),
  valid_at: timestamp({
    description: 'Only edges that were true at this time. Default: now, or the time of `as_of`',
  }).optional(),
  as_of: queryPointInHistory({
    description: "What the graph held then: a sequence of the graph's stream, or a time. Default: now",
  }).optional(),
});

const total = (kind: string) => z.int().min(0).describe(`${kind} that match, whatever the limit is`);

const searchSchema = z
  .object({
    ranking: z
      .enum(RANKINGS)
      .describe('`words` alone, or meanings as well: see `EMBEDDING_BASE_URL`; `newest` without words to search for'),
    total_nodes: total('Nodes'),
    total_edges: total('Edges'),
    nodes: z.array(nodeSchema),
    edges: z.array(edgeSchema),
  })
  .meta({ id: 'KnowledgeSearch' });

/** Null for a graph that the organization does not have, or not yet at `asOf`. */
export type Search = (organizationId: string, graphId: string, question: Question) => Promise<SearchResult | null>;

const { reads } = routesTagged('knowledge');

export function searchRoutes(app: HttpApp, search: Search): void {
  app.get(
    '/api/v1/knowledge/:id/search',
    reads({
      operationId: 'searchKnowledge',
      summary: 'Search the nodes and edges of a knowledge graph',
      description: 'The best matches first; equal ones in the order of their ids.',
      params: graphParams,
      querystring: searchQuery,
      response: { 200: searchSchema },
    }),
    async (request) => {
      const { query, limit, valid_at: validAt, as_of: asOf } = request.query;
      const { organizationId } = request.principal;
      const found = await search(organizationId, request.params.id, { query, limit, validAt, asOf });
      if (found === null) throw notFound();
      return found;
    },
  );
}
