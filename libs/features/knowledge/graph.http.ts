import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';

import { faultAfterWrite } from '#libs/kernel/faults.ts';
import { EntityReplies } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  type HttpApp,
  invalid,
  notFound,
  notModified,
  openPage,
  routesTagged,
  sendJson,
  sendPage,
} from '#libs/platform/http/index.ts';

import { factsToLearn, statedFacts } from './stated-facts.ts';
import { type GraphResult, type Graphs, nameFacet } from './graph.read.ts';
import { GraphResources } from './graph.resource.ts';
import {
  addFactsBody,
  createGraphBody,
  edgeParams,
  edgeSchema,
  endEdgeBody,
  factsSchema,
  graphPageSchema,
  graphParams,
  graphSchema,
  listGraphsQuery,
  readGraphQuery,
  updateGraphBody,
} from './graph.schemas.ts';
import { decideDelete, decideEndEdge, decideUpdate } from './graph.ts';
import type { GraphIndex } from './search/index.ts';

export interface GraphRouteParts {
  readonly graphs: Graphs;
  readonly index: GraphIndex;
}

const { reads, writes } = routesTagged('knowledge');
const params = graphParams;
const response = { 200: graphSchema };

export function graphRoutes(app: HttpApp, parts: GraphRouteParts): void {
  const resources = new GraphResources(parts.index);
  readRoutes(app, parts.graphs, resources);
  commandRoutes(app, parts, resources);
  factRoutes(app, parts);
}

function readRoutes(app: HttpApp, graphs: Graphs, resources: GraphResources): void {
  app.get(
    '/api/v1/knowledge',
    reads({
      operationId: 'listKnowledgeGraphs',
      summary: 'List knowledge graphs, newest first',
      querystring: listGraphsQuery,
      response: { 200: graphPageSchema },
    }),
    async (request, reply) => {
      const { organizationId } = request.principal;
      const { name } = request.query;
      const page = openPage(request, request.query, { organizationId, name });
      const found = await graphs.states(organizationId, { name: name && nameFacet(name) }, page);
      const items = await Promise.all(found.states.map((graph) => resources.of(graph)));
      return sendPage(reply, items, page.meta(found));
    },
  );

  app.get(
    '/api/v1/knowledge/:id',
    reads({
      operationId: 'getKnowledgeGraph',
      summary: 'Read a knowledge graph in its current state, or at a point in its history',
      params,
      querystring: readGraphQuery,
      response,
    }),
    async (request, reply) => {
      const present = await graphs.find(request.principal.organizationId, request.params.id);
      if (present === null) throw notFound();
      const { as_of: asOf } = request.query;
      const past = asOf === undefined ? undefined : await resources.at(present, asOf);
      if (past === null) throw notFound();
      // The revision is that of the document, so the tag identifies the same bytes in reads of the past.
      if (notModified(request, reply, past?.revision ?? present.changedRevision)) return reply;
      return sendJson(reply, past === undefined ? await resources.of(present) : past.json);
    },
  );
}

function commandRoutes(app: HttpApp, { graphs, index }: GraphRouteParts, resources: GraphResources): void {
  const replies = new EntityReplies(graphs, {});
  const sendGraph = async (request: FastifyRequest, reply: FastifyReply, result: GraphResult) => {
    const graph = replies.accepted(request, reply, result);
    return sendJson(reply, await resources.of(graph));
  };

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
      return sendGraph(request, reply, result);
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
      return sendGraph(request, reply, result);
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

function factRoutes(app: HttpApp, { graphs, index }: GraphRouteParts): void {
  const replies = new EntityReplies(graphs, {});

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
