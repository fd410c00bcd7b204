/** Crawls: websites whose pages become documents. One stream, `crawl-<id>`, for each. */
import type { Documents, ExtractionPool, IngestedDocuments } from '#libs/features/documents/index.ts';
import type { Knowledge } from '#libs/features/knowledge/index.ts';
import { Entities } from '#libs/platform/entity/index.ts';
import type { HttpApp } from '#libs/platform/http/index.ts';
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { crawlRoutes } from './crawl.http.ts';
import { crawlReactor } from './crawl.reactor.ts';
import { crawlEntity } from './crawl.read.ts';
import { HostSlots } from './host-slots.ts';

interface CrawlsDeps {
  readonly knowledge: Knowledge;
  readonly documents: Documents;
  readonly ingestedDocuments: IngestedDocuments;
  readonly extraction: ExtractionPool;
}

export const crawlsModule = {
  name: 'crawls',
  projections: [crawlEntity.projection],
  create(core: Core, deps: CrawlsDeps) {
    const crawls = new Entities(crawlEntity, core);
    const { fetcher, clock, redis } = core;
    const tools = { ...deps, fetcher, clock, slots: new HostSlots(redis), intervalMs: 500 };
    return {
      crawls,
      routes: (app: HttpApp) => crawlRoutes(app, { crawls, knowledge: deps.knowledge, fetcher }),
      reactors: [crawlReactor(tools)],
    };
  },
} satisfies Module;
