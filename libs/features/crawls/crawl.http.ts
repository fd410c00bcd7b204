import { z } from 'zod';

import { type Knowledge, requireGraph } from '#libs/features/knowledge/index.ts';
import { declareReads, EntityReplies, firstWordFacet, type RejectionErrors } from '#libs/platform/entity/index.ts';
import type { Fetcher } from '#libs/platform/fetch/index.ts';
import {
  commandContext,
  conflict,
  type HttpApp,
  httpUrl,
  idFilter,
  idParam,
  idReference,
  queryBooleanOrNull,
  queryOption,
  requireFetchable,
  routesTagged,
  text,
} from '#libs/platform/http/index.ts';

import { type CrawlFacets, type Crawls, crawlSchema, DEFAULT_MAX_PAGES, urlFacet } from './crawl.read.ts';
import {
  type CrawlEvent,
  type CrawlRejection,
  type CrawlState,
  decideCancel,
  decideDeactivate,
  decideRescan,
} from './crawl.ts';

const body = z
  .object({
    url: httpUrl({ description: 'Page to start from' }),
    knowledge_graph: idReference({ description: 'Graph that learns from the pages' }).nullish(),
    scan_depth: z.int().min(1).max(3).default(1).describe('1: the page alone; 2: the pages it links to, too; …'),
    max_pages: z
      .int()
      .min(1)
      .max(300)
      .default(DEFAULT_MAX_PAGES)
      .describe('Pages to read, with a document each; applies when `scan_depth` is above 1'),
  })
  .meta({
    id: 'CrawlCreate',
    examples: [
      {
        url: 'https://www.example.org/help',
        knowledge_graph: '01a1ff85-0000-7000-8000-000000000000',
        scan_depth: 2,
        max_pages: 50,
      },
    ],
  });

const params = z.object({ id: idParam('Id of the crawl') });
const errors: RejectionErrors<CrawlRejection> = {
  running: () => conflict('The crawl is under way', 'crawl_running'),
  inactive: () => conflict('The crawl is not active', 'crawl_inactive'),
};

type Graphs = Pick<Knowledge, 'graph'>;
type Replies = EntityReplies<CrawlState, CrawlEvent, CrawlFacets, CrawlRejection>;

const { writes } = routesTagged('crawls');
const response = { 200: crawlSchema };

export function crawlRoutes(app: HttpApp, crawls: Crawls, knowledge: Graphs, fetcher: Pick<Fetcher, 'check'>): void {
  const replies = new EntityReplies(crawls, errors);
  readRoutes(app, replies);
  createRoute(app, replies, crawls, knowledge, fetcher);
  commandRoutes(app, replies);
}

function readRoutes(app: HttpApp, replies: Replies): void {
  declareReads(app, replies, {
    path: '/api/v1/crawls',
    tag: 'crawls',
    params,
    schema: crawlSchema,
    list: {
      operationId: 'listCrawls',
      summary: 'List crawls, newest first',
      filters: {
        status: queryOption(text({ max: 256, description: 'The first word of the status, such as `Failed`' })),
        url: queryOption(text({ max: 2_083, description: 'The URL that the crawl starts from' })),
        is_active: queryBooleanOrNull({
          default: true,
          description: 'Crawls that were not deactivated, or those that were; `null`: both',
        }),
        knowledge_graph: queryOption(idFilter()),
      },
      facets: ({ status, url, is_active, knowledge_graph }) => ({
        status: status && firstWordFacet(status),
        url: url === undefined ? undefined : urlFacet(url),
        is_active: is_active ?? undefined,
        knowledge_graph,
      }),
    },
    one: { operationId: 'getCrawl', summary: 'Read a crawl' },
    events: {
      operationId: 'streamCrawlEvents',
      summary: 'Follow a crawl: its events as server-sent events, until the scan has ended',
    },
  });
}

function createRoute(
  app: HttpApp,
  replies: Replies,
  crawls: Crawls,
  knowledge: Graphs,
  fetcher: Pick<Fetcher, 'check'>,
): void {
  const summary = 'Crawl a website: its pages become documents, from which the knowledge graph learns';

  app.post(
    '/api/v1/crawls',
    writes({ operationId: 'createCrawl', summary, body, response }),
    async (request, reply) => {
      const { url, knowledge_graph: graph = null, scan_depth: scanDepth, max_pages: maxPages } = request.body;
      const { href } = requireFetchable(fetcher, url, ['body', 'url']);
      const context = commandContext(request);
      await requireGraph(knowledge, context.organizationId, graph);
      const id = context.commandId;
      const crawl = { id, url: href, knowledgeGraph: graph, scanDepth };
      const pages = scanDepth === 1 ? 1 : maxPages;
      const data = { ...crawl, maxPages: pages };
      return replies.sendResult(request, reply, await crawls.create(context, id, { type: 'CrawlRequested.v1', data }));
    },
  );
}

function commandRoutes(app: HttpApp, replies: Replies): void {
  const command = (operationId: string, summary: string) => writes({ operationId, summary, params, response });

  app.post(
    '/api/v1/crawls/:id/cancel',
    command('cancelCrawl', 'Cancel the scan under way; its pages stay'),
    (request, reply) => replies.sendUpdated(request, reply, decideCancel),
  );
  app.post(
    '/api/v1/crawls/:id/rescan',
    command(
      'rescanCrawl',
      'Crawl again: documents change where pages have changed, and are deleted where pages are gone',
    ),
    (request, reply) => replies.sendUpdated(request, reply, decideRescan),
  );
  app.delete(
    '/api/v1/crawls/:id',
    command('deactivateCrawl', 'Deactivate a crawl permanently: a scan under way is cancelled, and documents stay'),
    (request, reply) => replies.sendUpdated(request, reply, decideDeactivate),
  );
}
