/** Crawls: websites whose pages become documents. One stream, `crawl-<id>`, for each. */
import type { Core, Module } from '#libs/platform/runtime/index.ts';

import { crawlReactor, type CrawlTools } from './crawl.reactor.ts';
import { crawlEntity } from './crawl.read.ts';
import { HostSlots } from './host-slots.ts';

export { crawlRoutes } from './crawl.http.ts';
export { crawlEntity } from './crawl.read.ts';

export const crawlsModule = { name: 'crawls', projections: [crawlEntity.projection] } satisfies Module;

export function crawlReactors(
  { fetcher, clock, redis }: Core,
  parts: Pick<CrawlTools, 'knowledge' | 'documents' | 'ingestedDocuments' | 'extraction'>,
) {
  return [crawlReactor({ ...parts, fetcher, clock, slots: new HostSlots(redis), intervalMs: 500 })];
}
