import type { RequestListener } from 'node:http';

import type { HttpApp } from './server-options.ts';

const PREFIX = '/docs';

/**
 * The reference page at `/docs`, script and all from this process. Whoever opens it first waits for it to be loaded,
 * and so does, for a quarter of a second, everybody else: no start does, and most processes are never asked.
 */
export function registerDocumentation(app: HttpApp, title: string): void {
  let page: Promise<RequestListener> | undefined;
  for (const path of ['', '/', '/js/scalar.js']) {
    app.get(`${PREFIX}${path}`, async (request, reply) => {
      page ??= import('./documentation-page.ts').then(({ documentationPage }) => documentationPage(PREFIX, title));
      const serve = await page;
      reply.hijack();
      serve(request.raw, reply.raw);
    });
  }
}
