import { z } from 'zod';

import { faultAfterWrite } from '#libs/kernel/faults.ts';
import { declareReads, digestFacet, EntityReplies } from '#libs/platform/entity/index.ts';
import { commandContext, type HttpApp, invalid, notFound, routesTagged } from '#libs/platform/http/index.ts';

import { factsToLearn, statedFacts } from './stated-facts.ts';
import { type GraphFacets, type Graphs, withCounts } from './graph.read.ts';
import {
  addFactsBody,
  createGraphBody,
  edgeParams,
  edgeSchema,
  endEdgeBody,
  factsSchema,
  graphFilters,
  graphParams,
  graphSchema,
  updateGraphBody,
} from './graph.schemas.ts';
import { decideDelete, decideEndEdge, decideUpdate, type GraphEvent, type GraphState } from './graph.ts';
import type { GraphSearch } from './search/index.ts';

type Replies = EntityReplies<GraphState, GraphEvent, GraphFacets>;

const { writes } = routesTagged('knowledge');
const params = graphParams;
const response = { 200: graphSchema };

export function graphRoutes(app: HttpApp, graphs: Graphs, index: GraphSearch): void {
  const replies = new EntityReplies(graphs, {}, withCounts(index));
  readRoutes(app, replies, graphs, index);
  commandRoutes(app, replies, graphs, index);
  factRoutes(app, replies, graphs, index);
}

function readRoutes(app: HttpApp, replies: Replies, graphs: Graphs, index: GraphSearch): void {
  declareReads(app, replies, {
    path: '/api/v1/knowledge',
    tag: 'knowledge',
    params,
    schema: graphSchema,
    list: {
      operationId: 'listKnowledgeGraphs',
      summary: 'List knowledge graphs, newest first',
      filters: graphFilters,
      facets: ({ name }) => ({ name: name && digestFacet(name) }),
    },
    one: {
      operationId: 'getKnowledgeGraph',
      summary: 'Read a knowledge graph in its current state, or at a point in its history',
      // The stream of a graph is long, and its index has its past.
      async past(organizationId, id, point) {
        const present = await graphs.projected(organizationId, id);
        const past = present && (await index.past(id, point));
        if (present === null || past === null) return null;
        const { revision: changedRevision, ...then } = past;
        return { ...present, ...then, changedRevision };
      },
    },
  });
}

function commandRoutes(app: HttpApp, replies: Replies, graphs: Graphs, index: GraphSearch): void {
  app.post(
    '/api/v1/knowledge',
    writes({
      operationId: 'createKnowledgeGraph',
      summary: 'Create an empty knowledge graph',
      body: createGraphBody,
      response,
    }),
    async (request, reply) => {
      const context = commandContext(request);
      const { name, description = null } = request.body;
      const data = { id: context.commandId, name, description };
      const result = await graphs.create(context, data.id, { type: 'GraphCreated.v1', data });
      return replies.sendResult(request, reply, result);
    },
  );

  app.patch(
    '/api/v1/knowledge/:id',
    writes({
      operationId: 'updateKnowledgeGraph',
      summary: 'Rename or describe a knowledge graph',
      params,
      body: updateGraphBody,
      response,
    }),
    async (request, reply) => {
      const context = commandContext(request);
      const result = await graphs.update(context, request.params.id, (graph) => decideUpdate(graph, request.body));
      return replies.sendResult(request, reply, result);
    },
  );

  app.delete(
    '/api/v1/knowledge/:id',
    writes({
      operationId: 'deleteKnowledgeGraph',
      summary: 'Delete a knowledge graph permanently, with its documents',
      params,
      response: { 204: z.null().describe('The graph is deleted') },
    }),
    async (request, reply) => {
      const { id } = request.params;
      replies.accepted(request, reply, await graphs.update(commandContext(request), id, decideDelete));
      await index.remove(id);
      return reply.code(204).send();
    },
  );
}

function factRoutes(app: HttpApp, replies: Replies, graphs: Graphs, index: GraphSearch): void {
  app.post(
    '/api/v1/knowledge/:id/facts',
    writes({
      operationId: 'addKnowledgeFacts',
      summary: 'Add facts to a knowledge graph',
      description:
        'All are added, or none. Facts that the graph has already stay as they are; `source` and `target` name nodes, which are created if there are none of these names.',
      params,
      body: addFactsBody,
      response: { 200: factsSchema },
    }),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const { id } = request.params;
      // Before the index is asked, which does not know organizations.
      if ((await graphs.find(organizationId, id)) === null) throw notFound();
      const stated = statedFacts(id, request.body);
      const ends = [...stated.ends.keys()];
      const known = ends.length === 0 ? [] : (await index.facts(id, { nodes: ends, edges: [] })).nodes;
      const context = commandContext(request);
      const result = await graphs.learn(context, id, [factsToLearn(stated, known)]);
      replies.accepted(request, reply, result);
      return index.facts(id, { nodes: stated.nodeIds, edges: stated.edgeIds }).catch((error: unknown) => {
        throw faultAfterWrite(error);
      });
    },
  );

  app.post(
    '/api/v1/knowledge/:id/edges/:edge_id/end',
    writes({
      operationId: 'endKnowledgeEdge',
      summary: 'End an edge: its fact is no longer true from a time on',
      description:
        'The edge stays in the graph, for times at which it was true. An edge that has been ended can be ended at another time.',
      params: edgeParams,
      body: endEdgeBody,
      response: { 200: edgeSchema },
    }),
    async (request, reply) => {
      const { id, edge_id: edgeId } = request.params;
      if ((await graphs.find(request.principal.organizationId, id)) === null) throw notFound();
      const edgeNow = async () => (await index.facts(id, { nodes: [], edges: [edgeId] })).edges[0];
      const edge = await edgeNow();
      if (edge === undefined) throw notFound();
      const context = commandContext(request);
      const invalidAt = request.body.invalid_at ?? context.at;
      if (edge.valid_at !== null && invalidAt < edge.valid_at) {
        throw invalid(['body', 'invalid_at'], 'it is before valid_at', request.body.invalid_at);
      }
      replies.accepted(request, reply, await graphs.update(context, id, () => decideEndEdge(edgeId, invalidAt)));
      return edgeNow().then(
        (ended) => ended ?? edge,
        (error: unknown) => {
          throw faultAfterWrite(error);
        },
      );
    },
  );
}
