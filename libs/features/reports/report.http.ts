import { z } from 'zod';

import { type Knowledge, requireGraph } from '#libs/features/knowledge/index.ts';
import { declareReads, EntityReplies, firstWordFacet } from '#libs/platform/entity/index.ts';
import {
  commandContext,
  type HttpApp,
  idFilter,
  idParam,
  idReference,
  queryOption,
  routesTagged,
  text,
} from '#libs/platform/http/index.ts';

import { DEFAULT_QUERY, type Reports, reportSchema } from './report.read.ts';
import { decideCancel } from './report.ts';

const body = z
  .object({
    query: text({ min: 1, max: 4_000, pattern: /\S/u, description: 'Focus of the research' }).default(DEFAULT_QUERY),
    knowledge_graph: idReference({ description: 'Graph to search; default: the newest of the organization' }).nullish(),
  })
  .meta({
    id: 'ReportCreate',
    examples: [{ query: 'What do customers ask most?', knowledge_graph: '01a1ff85-0000-7000-8000-000000000000' }],
  });

const params = z.object({ id: idParam('Id of the report') });
const { writes } = routesTagged('reports');
const response = { 200: reportSchema };

export function reportRoutes(app: HttpApp, reports: Reports, knowledge: Pick<Knowledge, 'graph'>): void {
  const replies = new EntityReplies(reports, {});

  declareReads(app, replies, {
    path: '/api/v1/reports',
    tag: 'reports',
    params,
    schema: reportSchema,
    list: {
      operationId: 'listReports',
      summary: 'List reports, newest first',
      filters: {
        status: queryOption(text({ max: 256, description: 'The first word of the status, such as `Failed`' })),
        knowledge_graph: queryOption(idFilter()),
      },
      facets: ({ status, knowledge_graph }) => ({ status: status && firstWordFacet(status), knowledge_graph }),
    },
    one: { operationId: 'getReport', summary: 'Read a report' },
    events: { operationId: 'streamReportEvents', summary: 'Follow the research of a report' },
  });

  app.post(
    '/api/v1/reports',
    writes({
      operationId: 'createReport',
      summary: 'Research a question in a knowledge graph, and write a report on it',
      body,
      response,
    }),
    async (request, reply) => {
      const { query, knowledge_graph: graph = null } = request.body;
      const context = commandContext(request);
      await requireGraph(knowledge, context.organizationId, graph);
      const data = { id: context.commandId, query, knowledgeGraph: graph };
      return replies.sendResult(
        request,
        reply,
        await reports.create(context, data.id, { type: 'ReportRequested.v1', data }),
      );
    },
  );

  app.post(
    '/api/v1/reports/:id/cancel',
    writes({ operationId: 'cancelReport', summary: 'Cancel a report that is not written yet', params, response }),
    (request, reply) => replies.sendUpdated(request, reply, decideCancel),
  );
}
